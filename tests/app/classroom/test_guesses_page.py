from collections import Counter
from copy import deepcopy
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.classroom import guesses_page
from core.classroom.guesses_page import GUESSES, Tally, finding
from core.lessons.compare import timing_pitfalls_page as timing_pitfalls
from core.lessons.compare.candidates import candidates
from core.lessons.device import parallel_page as parallel
from core.lessons.speed import climb_result
from core.ui import guess, spoilers
from tests.app import samples
from tests.app.store.made_up import summary
from tests.figures import figures

RACERS = [candidate.name for candidate in samples.RACE.candidates]


def test_a_questions_copy_which_streamlit_makes_of_a_choice_finds_its_answers():
    assert all(deepcopy(question) in dict.fromkeys(GUESSES) for question in GUESSES)


@pytest.mark.parametrize(
    ("key", "result", "answers"),
    [
        ("multiply_guess", samples.MULTIPLIED, parallel.TIMES),
        ("race_guess", samples.RACE, [*RACERS, guess.CLOSE]),
        ("timing_guess", samples.TIMING, timing_pitfalls.GUESSES),
        ("guess_two_workers", samples.CLIMBED, climb_result.GUESSES),
    ],
)
def test_what_was_measured_is_one_of_the_answers_with_its_ratio(key, result, answers):
    question = next(guess for guess in GUESSES if guess.key == key)
    fitting, figure = question.read(result)
    assert fitting
    assert set(fitting) <= set(answers)
    assert float(figure.removesuffix("×").partition(" to ")[0]) > 0


def test_each_members_first_run_answers_the_guess_on_home():
    (question,) = (guess for guess in GUESSES if guess.key == spoilers.FIRST_RUN)
    newest_first = (("a", 0.97), ("b", 0.795), ("c", 0.4), ("a", 0.83))
    runs = [summary(visitor=who, accuracy=share) for who, share in newest_first]
    figure = "80 of 100, the median of 3 first runs"
    assert question.measured({question.address: runs}) == (("80 to 94",), figure)
    assert question.measured({question.address: []}) is None


def test_first_runs_that_wait_or_run_are_told_as_still_to_come(monkeypatch):
    runs = [
        summary(visitor="c", accuracy=None, status="queued"),
        summary(visitor="b", accuracy=0.3, status="running"),  # after its first epoch
        summary(visitor="a", accuracy=0.9),
    ]

    def find(status: str = "", **_: object) -> list:
        return [run for run in runs if status in ("", run.status)]

    here = SimpleNamespace(
        answers=SimpleNamespace(of_class=lambda _, keys: {key: {} for key in keys}),
        runs=SimpleNamespace(find=find),
        names=lambda _: {},
        shown=lambda _: {},
    )
    for name in ("store", "room"):
        monkeypatch.setattr(guesses_page, name, lambda: here)
    monkeypatch.setattr(guesses_page.measured, "newest", lambda _: None)
    monkeypatch.setattr(spoilers, "is_too_late", lambda _: False)
    told = {q.key: tally.right for q, tally in guesses_page.of_class("a").items()}
    right = told[spoilers.FIRST_RUN]
    assert right
    assert figures(right[1]) == ["90", "100", "1", "2"]


def test_readings_that_allow_several_answers_leave_each_of_them_open():
    several = ("less", "same"), "1×"
    question = replace(GUESSES[0], read=lambda _: several)
    assert question.measured({question.address: "a result"}) == several
    assert question.measured({}) is None


def test_only_answers_that_a_page_offers_are_counted(monkeypatch):
    machine = samples.machine("CUDA", "CPU")
    racers = [candidate.name for candidate in candidates(machine)]
    stored = {
        "multiply_guess": [parallel.TIMES[0], "<b>", ["x"], 1, guess.JUST_SHOW],
        "race_guess": [racers[0], f"{racers[0]}, again", guess.CLOSE, "B" * 9_000],
    }
    by_visitor = {
        key: dict(enumerate(stored.get(key, ()))) for key in (q.key for q in GUESSES)
    }
    here = SimpleNamespace(
        answers=SimpleNamespace(of_class=lambda *_: by_visitor),
        runs=SimpleNamespace(find=lambda **_: []),
        names=lambda _: {who: str(who) for who in range(5)},
        machine=lambda: machine,
        shown=lambda _: {"timing_guess": [["10 times"], "9.9×"]},
    )
    for name in ("store", "room", "engine"):
        monkeypatch.setattr(guesses_page, name, lambda: here)
    monkeypatch.setattr(guesses_page.measured, "newest", lambda _: None)
    of_class = guesses_page.of_class("a")
    tallies = {question.key: tally.answers for question, tally in of_class.items()}
    assert +tallies["multiply_guess"] == {parallel.TIMES[0]: 1}
    assert tallies["race_guess"] == dict.fromkeys(stored["race_guess"][:3], 1)
    # Who asked for the result can't guess any more, and isn't waited for.
    asked = next(t for q, t in of_class.items() if q.key == "multiply_guess")
    assert "4" in asked.silent
    assert not {*asked.silent} & {*asked.missing}
    # What the class has seen as the result stays, whatever is measured now.
    seen = {question.key: tally.right for question, tally in of_class.items()}
    assert seen.pop("timing_guess") == (("10 times",), "9.9×")
    assert not any(seen.values())


def test_the_class_is_compared_with_what_was_measured_if_anything_was():
    tally = Tally(Counter({"Slower": 3, "Twice": 9}), (("Slower",), "0.9×"), 14, [], [])
    assert figures(finding(tally)) == ["12", "14", "0.9", "3"]
    assert "“Slower”" in finding(tally)
    assert figures(finding(tally._replace(right=None))) == ["12", "14"]
    either = finding(tally._replace(right=(("Slower", "Twice"), "0.8 to 2×")))
    assert figures(either) == ["12", "14", "0.8", "2"]
    assert "“Slower” or “Twice”" in either
    unclear = tally._replace(right=((), "0.51 to 1.57×"))
    assert figures(finding(unclear)) == ["12", "14", "0.51", "1.57"]
    none = tally._replace(answers=Counter(), right=None)
    assert figures(finding(none)) == ["0", "14"]
