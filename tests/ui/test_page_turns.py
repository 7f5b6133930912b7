"""core.ui.page_turns: one page at a time, but nobody waits for long."""

import threading
import time

import pytest

from core.ui import page_turns, server


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Whoever has no turn after a minute never gets one."""
    monkeypatch.setattr(page_turns, "MOST_SECONDS", 60.0)
    yield
    page_turns.give_back()


def in_thread(draw) -> threading.Thread:
    thread = threading.Thread(target=draw)
    thread.start()
    return thread


def test_one_page_is_drawn_at_a_time():
    """However many there are, and each has its turn."""
    drawing, most, drawn = 0, 0, 0

    def draw() -> None:
        nonlocal drawing, most, drawn
        page_turns.take()
        drawing += 1
        most = max(most, drawing)
        time.sleep(0.005)
        drawing, drawn = drawing - 1, drawn + 1
        page_turns.give_back()

    for thread in [in_thread(draw) for _ in range(10)]:
        thread.join()
    assert (most, drawn) == (1, 10)


def test_nobody_waits_for_a_page_that_hangs(monkeypatch):
    """Whoever began without a turn gives none back: the third page waits too."""
    page_turns.take()
    monkeypatch.setattr(page_turns, "MOST_SECONDS", 0.01)
    drawn: list[bool] = []

    def draw() -> None:
        page_turns.take()
        drawn.append(page_turns._mine.has_it)
        page_turns.give_back()

    for _ in range(2):
        in_thread(draw).join()
    assert drawn == [False, False]
    page_turns.give_back()
    in_thread(draw).join()
    assert drawn[2]


def test_who_waits_for_a_worker_gives_the_turn_away(monkeypatch):
    """Before it asks, so that the next page is drawn meanwhile."""
    others: list[bool] = []

    def ask(*_arguments, **_more) -> str:
        def draw() -> None:
            page_turns.take()
            others.append(page_turns._mine.has_it)
            page_turns.give_back()

        in_thread(draw).join()
        return "an answer"

    monkeypatch.setattr("core.jobs.engine.Engine.ask", ask)
    page_turns.take()
    engine = object.__new__(server.PagesEngine)
    assert engine.ask("core.devices:describe") == "an answer"
    assert others == [True]
