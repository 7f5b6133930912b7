"""core.jobs.roster: who is there, by what the scheduler tells."""

import pytest

from core.jobs import roster
from core.jobs.roster import SILENT_SECONDS, Roster, first_gpu


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Its one entry is what the time is."""
    now = [1000.0]
    monkeypatch.setattr(roster.time, "monotonic", lambda: now[0])
    return now


def told(word: float, name: str = "lab", **lanes: int) -> dict:
    return {"last_seen": word, "resources": lanes, "name": name}


def test_each_lane_takes_what_its_workers_take_together(clock):
    """For as long as the scheduler says so."""
    here = Roster()
    here.hear({"a": told(1, train=1), "b": told(1, train=1), "c": told(1, lab=4)})
    assert here.capacity == here.answering() == {"train": 2, "lab": 4}
    assert here.seconds_without("train") == 0
    clock[0] += 1
    here.hear({"c": told(2, lab=4)})
    clock[0] += 2
    assert here.answering() == {"lab": 4}
    assert here.seconds_without("train") == 3


def test_who_is_on_other_machines():
    here = Roster()
    there = {"c": told(1, "b-train-0", train=1), "d": told(1, "b-lab", lab=4)}
    here.hear({"a": told(1, "a-train-0", train=1), **there})
    assert here.others("train", {"a"}) == ["c"]
    assert here.others("train", {"a", "b"}) == []


def test_a_scheduler_that_tells_nothing_is_not_there(clock):
    here = Roster()
    here.hear({"a": told(1, train=1)})
    clock[0] += SILENT_SECONDS + 1
    assert here.answering() is None
    here.hear({"a": told(2, train=1)})
    assert here.answering() == {"train": 1}


def test_a_worker_that_says_nothing_is_not_there(clock):
    """The scheduler may list it for long; clocks of other machines do not matter."""
    here = Roster()
    for second in range(int(SILENT_SECONDS) + 2):
        here.hear({"a": told(-50, train=1), "b": told(9e9 + second, lab=4)})
        clock[0] += 1
    assert here.answering() == {"lab": 4}
    assert here.capacity == {"train": 1, "lab": 4}, "jobs may still wait for it"
    here.hear({"a": told(-49, train=1)})
    assert here.answering() == {"train": 1}


def test_workers_of_one_machine_are_known_by_its_name(clock):
    """It is heard while one of them is, and one that is heard speaks for it."""
    here = Roster()

    def look(word: float) -> list[tuple]:
        here.hear(
            {
                "a": told(word, "big-host-train-0", train=1),
                "b": told(1, "big-host-train-1", train=1),
                "c": told(1, "big-host-lab", lab=4),
                "d": told(1, "other-train-0", train=1),
            }
        )
        return [tuple(each)[:4] for each in here.hosts()]

    assert look(1) == [("big-host", "c", 2, True), ("other", "d", 1, True)]
    clock[0] += SILENT_SECONDS + 1
    assert look(2) == [("big-host", "a", 2, True), ("other", "d", 1, False)]


def test_an_app_with_workers_of_its_own_has_one_machine():
    here = Roster()
    here.hear({"a": told(1, "train-0", train=1), "b": told(1, "lab", lab=4)})
    assert [tuple(each)[:3] for each in here.hosts()] == [("", "b", 1)]


def test_who_speaks_sees_all_devices_together(clock):
    """Where a machine has no lab that is heard, each that trains knows its GPU."""
    here = Roster()
    trains = {f"t{n}": told(1, f"b-train-{n}", train=1) for n in range(2)}

    def speak(word: float) -> dict[str, str]:
        here.hear(
            {
                "a": told(word, "a-train-0", train=1),
                "c": told(1, "a-lab", lab=4),
                **trains,
            }
        )
        return here.speakers()

    assert speak(1) == {"a-lab": "c", "b-train-0": "t0", "b-train-1": "t1"}
    assert [first_gpu(each) for each in speak(1)] == [0, 0, 1]
    clock[0] += SILENT_SECONDS + 1
    assert speak(2) == {"a-train-0": "a"}
