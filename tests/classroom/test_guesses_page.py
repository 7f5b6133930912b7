from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.classroom.guesses_page import GUESSES, finding
from core.lessons.compare import timing_pitfalls_page as timing_pitfalls
from core.lessons.device import parallel_page as parallel
from core.lessons.speed import climb_result
from core.ui import guess, last_measurement
from tests import samples

RACERS = [candidate.name for candidate in samples.RACE.candidates]


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
    asked = next(each for each in GUESSES if each.key == key)
    fitting, figure = asked.read(result)
    assert fitting
    assert set(fitting) <= set(answers)
    assert float(figure.removesuffix("×").partition(" to ")[0]) > 0


def test_readings_that_allow_every_answer_prove_none_right(monkeypatch):
    asked = replace(GUESSES[0], read=lambda _: (("less", "same", "more"), "1×"))
    monkeypatch.setattr(last_measurement, "newest", lambda _: SimpleNamespace(value=1))
    assert asked.measured() == ((), "1×")


def test_the_class_is_compared_with_what_was_measured_if_anything_was():
    answers = Counter({"Slower": 3, "Up to twice as fast": 9})
    assert finding(answers, (("Slower",), "0.9×")) == (
        "**Of 12 guesses, 9 were “Up to twice as fast”. Measured: 0.9×.** 3 guessed "
        "right: “Slower”."
    )
    assert "hasn't been measured yet" in finding(answers, None)
    assert "The machine couldn't tell: 0.51 to 1.57×" in finding(
        answers, ((), "0.51 to 1.57×")
    )
    assert finding(Counter(), None) == "Nobody has made a guess about this yet."
