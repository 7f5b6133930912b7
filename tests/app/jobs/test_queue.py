from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import RunConfig
from core.jobs import queue as queues
from core.jobs.job import Job
from core.jobs.queue import Queue

# What happens in a lane: somebody's job comes, one is served, one who waits gives up.
PEOPLE = "ABCD"
COMINGS = st.lists(st.sampled_from([*PEOPLE, "serve", "give up"]), max_size=60)


def queue(*lanes: str) -> Queue:
    """One job after the other, named by its place: "0", "1", ..."""
    waiting = Queue()
    for number, lane in enumerate(lanes):
        waiting.add(Job(str(number), "core.training:run", (), lane))
    return waiting


def hand_out(waiting: Queue, **capacity: int) -> list[str]:
    """The ids of the jobs that workers get, until none is free or none waits."""
    handed_out = []
    while (job := waiting.next(capacity)) is not None:
        waiting.take(job)
        handed_out.append(job.id)
    return handed_out


def come(waiting: Queue, name: str, lane: str = "train") -> None:
    """A job of the person who gives it its first letter: "A1"."""
    waiting.add(Job(name, "core.training:run", (), lane, owner=name[0]))


def serve(waiting: Queue) -> str:
    """One worker takes the next job, which ends when the next but one is taken."""
    job = waiting.next({"train": 99})
    if job is None:
        return ""
    waiting.take(job)
    for before in waiting.at_work("train")[:-1]:
        waiting.remove(before.id)
    return job.id


class Story:
    """What comes, played, and the places that everybody saw after each event."""

    def __init__(self, happened: list[str]) -> None:
        self.queue, self.counts = Queue(), Counter[str]()
        self.places: dict[str, list[int]] = {}
        for event in happened:
            if event == "serve":
                serve(self.queue)
            elif event == "give up":
                for job in self.queue.waiting("train")[1:2]:
                    self.queue.remove(job.id)
            else:
                self.counts[event] += 1
                come(self.queue, name := f"{event}{self.counts[event]}")
                self.places[name] = []
            for name, places in self.places.items():
                if place := self.queue.place(name):
                    places.append(place)


def test_whose_turn_was_longest_ago_goes_next():
    waiting, names = Queue(), ["A1", "A2", "B1", "C1", "C2", "A3"]
    for name in names:
        come(waiting, name)
    assert [waiting.place(name) for name in names] == [1, 4, 2, 3, 5, 6]
    assert [serve(waiting) for _ in names] == ["A1", "B1", "C1", "A2", "C2", "A3"]


def test_a_newcomer_enters_at_the_current_round():
    waiting = Queue()
    for name in ("A1", "A2", "A3", "B1", "B2"):
        come(waiting, name)
    assert [serve(waiting), serve(waiting), serve(waiting)] == ["A1", "B1", "A2"]
    come(waiting, "N1")
    assert [serve(waiting) for _ in range(3)] == ["B2", "N1", "A3"]


def test_the_apps_own_job_lets_people_go_first_but_not_for_ever():
    waiting = queue("train")
    names = [f"{person}1" for person in map(chr, range(200, 202 + queues.PATIENCE))]
    for name in names[:2]:
        come(waiting, name)
    assert [waiting.place(name) for name in ("0", *names[:2])] == [3, 1, 2]
    for name in names[2:]:
        come(waiting, name)
    served = [serve(waiting) for _ in range(len(names) + 1)]
    assert served == [*names[: queues.PATIENCE], "0", *names[queues.PATIENCE :]]


def test_a_removed_job_does_not_count_against_its_owner():
    waiting = Queue()
    for name in ("X1", "A1", "B1"):
        come(waiting, name)
    serve(waiting)
    for name in ("A1", "nobody"):
        waiting.remove(name)
    assert (waiting.place("A1"), waiting.place("B1")) == (0, 1)
    come(waiting, "A2")
    come(waiting, "B2")
    assert [serve(waiting) for _ in range(3)] == ["B1", "A2", "B2"]


def test_a_job_that_is_put_back_is_next():
    waiting = Queue()
    for name in ("A1", "B1", "A2", "B2"):
        come(waiting, name)
    assert serve(waiting) == "A1"
    waiting.put_back("A1")
    assert [waiting.place(name) for name in ("A1", "B1", "A2", "B2")] == [1, 2, 3, 4]
    assert [serve(waiting) for _ in range(4)] == ["A1", "B1", "A2", "B2"]


@given(COMINGS)
def test_nobody_is_served_three_times_while_another_waits(happened):
    """From when a person's first job waits until its turn, whatever else happens."""
    story = Story([])
    turns: Counter[str] = Counter()
    for event in [*happened, *["serve"] * 60]:
        head = next((j for j in story.queue.waiting("train") if j.owner == "A"), None)
        if event == "serve":
            name = serve(story.queue)
            turns[name[:1]] += 1
            if head is None or name == head.id:
                turns.clear()
            assert max(turns.values(), default=0) <= 2
        elif event != "give up":
            story.counts[event] += 1
            come(story.queue, f"{event}{story.counts[event]}")


@given(COMINGS, st.integers(0, 3))
def test_nobody_starves(happened, patience):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "PATIENCE", patience)
        waiting = Queue()
        come(waiting, "Z0")
        come(waiting, "Z1")  # a second turn, which newcomers overtake
        for number, event in enumerate(happened):
            if event in PEOPLE:
                come(waiting, f"{event}{number}")
        served, place = 0, waiting.place("Z1")
        assert place <= 2 + patience
        for number in range(99):
            waiting.add(Job(f"new{number}", "", (), "train", f"cookie {number}"))
            served += 1
            if serve(waiting) == "Z1":
                break
        assert served <= 2 + patience


@given(COMINGS, st.integers(0, 3))
def test_a_place_in_the_queue_never_gets_worse_by_more_than_one(happened, patience):
    """A job that joins makes it worse by one at most, and all together by patience."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "PATIENCE", patience)
        for places in Story(happened).places.values():
            assert all(after <= before + 1 for before, after in pairwise(places))
            assert max(places) <= places[0] + patience


@given(COMINGS)
def test_in_the_round_that_is_served_nobody_is_overtaken(happened):
    story = Story(["A", "B", *happened])
    places = story.places["B1"]
    assert places == sorted(places, reverse=True)


@given(COMINGS)
def test_places_are_the_order_in_which_jobs_start(happened):
    """1, 2, 3 ... without a gap, and if nobody comes they are served like that."""
    queue = Story(happened).queue
    waiting = [job.id for job in queue.waiting("train")]
    places = [queue.place(job_id) for job_id in waiting]
    assert places == [*range(1, len(waiting) + 1)]
    assert [serve(queue) for _ in waiting] == waiting


def test_nobody_is_remembered_for_longer_than_it_matters():
    waiting = Queue()
    for name in ("A1", "B1", "A2", "A3"):
        come(waiting, name)
    assert [serve(waiting), serve(waiting)] == ["A1", "B1"]
    assert set(waiting._served) == {("train", "A"), ("train", "B")}
    serve(waiting)
    assert set(waiting._served) == {("train", "A")}
    last = serve(waiting)
    waiting.remove(last)
    assert waiting._served == {}


def test_lanes_do_not_wait_for_each_other():
    waiting = queue("train", "lab", "train", "lab")
    assert waiting.next({"train": 1, "lab": 2}, ["train"]).id == "1"
    assert waiting.next({"train": 1, "lab": 2}, ["train", "lab"]) is None
    assert [waiting.place(job_id) for job_id in "0123"] == [1, 1, 2, 2]
    assert hand_out(waiting, train=1, lab=2) == ["0", "1", "3"]
    assert len(waiting) == 1


def test_people_who_count_as_one_share_one_place_in_the_order():
    waiting = Queue()
    for name in ("A1", "A2", "A3", "B1"):
        person = "" if name == "B1" else "outside"
        waiting.add(Job(name, "", (), "train", owner=name, person=person))
    assert waiting.count_of("outside") == 3
    assert [serve(waiting) for _ in range(4)] == ["A1", "B1", "A2", "A3"]


def test_one_person_does_not_take_all_of_the_lab():
    waiting = Queue()
    for name in ("A1", "A2", "B1"):
        come(waiting, name, "lab")
    assert hand_out(waiting, lab=3) == ["A1", "B1"]
    waiting.remove("A1")
    assert hand_out(waiting, lab=3) == ["A2"]


def test_more_workers_take_more_jobs_and_one_that_starts_gets_one():
    waiting = Queue()
    for name in ("A1", "A2", "A3"):
        come(waiting, name)
    assert hand_out(waiting, train=2) == ["A1", "A2"]
    assert hand_out(queue("train", "train")) == ["0"]


def test_a_job_for_one_machine_waits_for_that():
    config, free = RunConfig(host="b"), {"train": 3, "on a": 2, "on b": 1}
    waiting = Queue()
    for name, arguments in (("0", ()), ("1", (config,)), ("2", (config,)), ("3", ())):
        waiting.add(Job(name, "core.training:run", arguments, "train"))
    waiting.take(waiting.next(free))
    assert waiting.next(free, hosts={"0": "b"}).id == "3"
    assert waiting.next(free, hosts={"0": "a"}).id == "1"
    waiting.take(waiting.next(free, hosts={"0": "a"}))
    assert waiting.next(free, hosts={"0": "a"}).id == "3"
    waiting.remove("1")
    assert waiting.next(free, hosts={"0": "a"}).id == "2"
    assert waiting.next({"train": 3}, hosts={"0": "a"}).id == "3", "it is not there"


def test_a_queue_that_is_made_anew_has_the_same_order():
    """A newcomer joins the lowest round: behind who is in it, before the others."""
    before, rounds = Queue(), []
    for name in ("A1", "A2", "A3", "B1", "A4", "C1"):
        job = Job(name, "core.training:run", (), "train", owner=name[0])
        rounds.append((job, before.add(job)))
    for _ in range(3):
        serve(before)
    waiting = [(job, turn) for job, turn in rounds if before.place(job.id)]
    after = Queue()
    after.restore(waiting)
    order = [job.id for job in before.waiting("train")]
    assert [job.id for job in after.waiting("train")] == order == ["A2", "A3", "A4"]
    come(after, "D1")
    assert [job.id for job in after.waiting("train")] == ["A2", "D1", "A3", "A4"]
