from types import SimpleNamespace

import pytest

from core.classroom import board_page, standings_page
from core.config import RunConfig
from core.jobs.job import Job

TRAIN, MEASURE = "core.training:run", "core.lessons.device.parallel:measure"
CONFIG = RunConfig(task="sprites")


@pytest.mark.parametrize("anonymous", [False, True])
def test_the_last_row_reads_who_does_what_on_which_lesson(monkeypatch, anonymous):
    monkeypatch.setattr(board_page, "engine", lambda: SimpleNamespace(paused=False))
    room = SimpleNamespace(is_teacher=lambda visitor: visitor == "eve")
    monkeypatch.setattr(standings_page, "room", lambda: room)
    jobs = [
        Job("a", TRAIN, (CONFIG,), "train", owner="ada", status="running"),
        Job("b", MEASURE, (), "train", owner="bob", status="queued", place=1),
        Job("c", TRAIN, (CONFIG,), "train", owner="ada", status="queued", place=2),
    ]
    standings = SimpleNamespace(
        names={"ada": "Ada", "bob": "Bob"},
        classroom=SimpleNamespace(rules=SimpleNamespace(anonymous=anonymous)),
        queue=[
            *jobs,
            Job("d", MEASURE, (), "train", owner="eve", status="running"),
            Job("e", MEASURE, (), "train", owner="", status="running"),
        ],
    )
    ada, bob = ("Somebody", "Somebody") if anonymous else ("Ada", "Bob")
    teacher, app = standings_page.TEACHER, standings_page.APP
    told = [
        (ada, "ANN", "Sprites", "0%"),
        (f"1. {bob}", "Device"),
        (f"2. {ada}",),
        ("Somebody" if anonymous else teacher, "Device"),
        ("Somebody" if anonymous else app, "Device"),
    ]
    lines = board_page.queue_lines(standings, on_wall=True)
    for line, (who, *names) in zip(lines, told, strict=True):
        assert line.startswith(f"{who} ")
        assert all(name in line for name in names)


@pytest.mark.parametrize(("waiting", "listed"), [(6, 6), (7, 5), (30, 5)])
def test_the_count_of_the_rest_stands_for_more_than_one_job(
    monkeypatch, waiting, listed
):
    monkeypatch.setattr(board_page, "engine", lambda: SimpleNamespace(paused=False))
    room = SimpleNamespace(is_teacher=lambda visitor: visitor == "eve")
    monkeypatch.setattr(standings_page, "room", lambda: room)
    standings = SimpleNamespace(
        names={},
        classroom=SimpleNamespace(rules=SimpleNamespace(anonymous=False)),
        queue=[
            Job(f"{n}", MEASURE, (), "train", owner="eve", status="queued", place=n)
            for n in range(1, waiting + 1)
        ],
    )
    lines = board_page.queue_lines(standings, on_wall=True)
    assert sum("is waiting" in line for line in lines) == listed
    assert (lines[-1] == f"and {waiting - listed} more") == (waiting > listed)
