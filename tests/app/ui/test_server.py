import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from core.ui import server
from core.ui.server import KeptAnswer
from tests.app.jobs.follow import wait
from to_device.errors import ExplainedError


def test_an_app_without_a_database_goes_on_and_says_so(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    address = f"sqlite:///{tmp_path / 'file' / 'app.sqlite'}"
    monkeypatch.setenv("DATABASE_URL", address)
    store = server.store.__wrapped__()
    assert store.runs.find() == []
    assert "DATABASE_URL" in store.problem
    store.close()


def test_a_person_with_two_tabs_is_one_until_both_are_closed():
    for who in ("ana", "ana", "bo"):
        server.count_tabs(1, who, "10.0.0.1")
    assert server.open_pages().keys() >= {"ana", "bo"}
    server.count_tabs(-1, "ana", "10.0.0.1")
    assert "ana" in server.open_pages()
    server.count_tabs(-1, "ana", "10.0.0.1")
    server.count_tabs(-1, "bo", "10.0.0.1")
    assert server.open_pages().keys().isdisjoint({"ana", "bo"})


@pytest.mark.parametrize(
    ("own", "others", "counted"),
    [
        (1, [400], 2),  # one address with many tabs counts like one with as many
        (30, [400, 1, 1], 62),
        (500, [1], 501),  # a class has all of its own
        (300, [300], 600),
    ],
)
def test_no_address_counts_for_more_tabs_than_those_at_the_visitors(
    own, others, counted, monkeypatch
):
    tabs = {str(place): count for place, count in enumerate([own, *others])}
    monkeypatch.setattr(server, "_tabs_of", Counter(tabs))
    monkeypatch.setattr(server, "_network", lambda: "0")
    assert server.count_of_tabs() == counted


@pytest.mark.parametrize("ahead", [0, 7])
def test_a_spinner_tells_waiting_for_others_from_running(ahead, monkeypatch):
    shown = []

    def ask(_: str, number: int, *, lane: str, on_turn: Any, **__: Any) -> Any:
        if on_turn is not None:
            on_turn()
        return number, lane

    engine = SimpleNamespace(ahead=lambda _, lane: {"code": ahead}[lane], ask=ask)
    monkeypatch.setattr(server, "engine", lambda: engine)

    @contextmanager
    def spin(text: str, **_: object) -> Iterator[None]:
        shown.append(text)
        yield
        shown.append("")

    monkeypatch.setattr(server.st, "spinner", spin)
    assert server.run_code("Running it", "a:b", 1) == (1, "code")
    *waits, running, ended = shown
    assert (running, ended) == ("Running it", "")
    assert re.findall(r"\d+", "".join(waits)) == ([str(ahead)] if ahead else [])


@pytest.mark.parametrize("knows", [True, False])
def test_only_who_runs_the_server_reads_its_paths_and_addresses(knows, monkeypatch):
    monkeypatch.setattr(server, "knows_server", lambda: knows)
    for problem in ("No tls://10.0.0.3:8786.", "Not /var/lib/a.", r"Not C:\a."):
        assert server.told(problem, "Look.") == (problem if knows else "Look.")
    for problem in ("", "The disk is full."):
        assert server.told(problem, "Look.") == problem


# Answers that are kept: who waits for them, and when they are asked anew


def test_a_stale_answer_is_shown_while_it_is_asked_anew():
    questions, may_answer = [], threading.Event()

    def question() -> int:
        questions.append(len(questions))
        assert len(questions) == 1 or may_answer.wait(60)
        return len(questions)

    kept_answer = KeptAnswer(question, seconds=0)
    assert kept_answer.newest is None
    assert kept_answer() == 1
    assert [kept_answer(), kept_answer(), kept_answer()] == [1, 1, 1]
    wait(lambda: len(questions) > 1)
    assert questions == [0, 1]  # one question at a time
    may_answer.set()
    wait(lambda: kept_answer.newest == 2)


def test_a_fresh_answer_is_not_asked_anew():
    answers = iter("ab")
    kept_answer = KeptAnswer(lambda: next(answers), seconds=60)
    assert [kept_answer(), kept_answer()] == ["a", "a"]
    kept_answer.clear()
    assert kept_answer() == "b"


def test_all_who_wait_hear_the_same_failure_and_the_next_asks_again():
    """A class that opens a page does not wait one after the other."""
    may_answer, heard = threading.Event(), []
    problems = [ExplainedError("no answer")]

    def question() -> str:
        assert may_answer.wait(60)
        if problems:
            raise problems.pop()
        return "here"

    def look() -> None:
        try:
            heard.append(kept_answer())
        except ExplainedError as error:
            heard.append(str(error))

    kept_answer = KeptAnswer(question, seconds=60)
    people = [threading.Thread(target=look) for _ in range(5)]
    for person in people:
        person.start()
    time.sleep(0.1)
    may_answer.set()
    for person in people:
        person.join()
    assert set(heard) <= {"no answer", "here"}
    assert "no answer" in heard
    assert kept_answer() == "here"


def test_an_answer_that_can_not_be_had_again_is_not_shown_for_ever():
    answers = iter(["old"])

    def question() -> str:
        for answer in answers:
            return answer
        raise ExplainedError("no answer")

    kept_answer = KeptAnswer(question, seconds=0)
    assert kept_answer() == "old"
    kept_answer()  # asks anew, which fails
    wait(lambda: kept_answer.newest is None)
    with pytest.raises(ExplainedError):
        kept_answer()
