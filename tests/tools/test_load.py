from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.app import event_loop
from tools.load.lesson import Plan, hold
from tools.load.record import Turn, overtaken
from tools.load.report import complaints, figures, table
from tools.server import Server, open_class, start_server


@pytest.fixture
def door(tmp_path) -> str:
    """By which people join a class that is open on the server."""
    return f"Class?code={open_class(tmp_path, 10).code}"


@pytest.fixture
def server(tmp_path, door) -> Iterator[Server]:
    del door  # the class is there when the server starts
    server = start_server(tmp_path)
    yield server
    server.process.terminate()
    server.process.wait(60)


@pytest.mark.browser
@pytest.mark.alone
@pytest.mark.slow
def test_a_class_of_ten_is_served_in_order(server: Server, door: str) -> None:
    plan = Plan(
        url=server.url,
        pid=server.process.pid,
        people=10,
        browsers=1,
        arrival_seconds=2.0,
        alone=1,
        rest_seconds=0.0,
        door=door,
    )
    found = figures(event_loop.run(hold(plan)), server.log.read_text())
    print(table(found))
    assert complaints(found) == []


FIRST = Turn(person=1, pressed=0.0, taken=1.0, waited=9.0, served=10.0)
LATER = Turn(person=2, pressed=2.0, taken=3.0, served=8.0)


def test_who_is_served_before_somebody_who_came_earlier_has_overtaken() -> None:
    (told,) = overtaken([FIRST, LATER])
    assert told.startswith("1 ")
    assert " 2, " in told
    assert overtaken([replace(FIRST, waited=7.0), LATER]) == []
    assert overtaken([FIRST, replace(LATER, pressed=0.5)]) == []


def test_whose_turn_was_longer_ago_may_pass() -> None:
    before = [replace(FIRST, served=-1.0), replace(LATER, served=-2.0)]
    assert overtaken([FIRST, LATER], before) == []
    before = [replace(FIRST, served=-2.0), replace(LATER, served=-1.0)]
    assert len(overtaken([FIRST, LATER], before)) == 1
