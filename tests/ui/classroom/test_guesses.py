"""core.ui.classroom.guesses: what the class guessed, and what the machine said."""

from collections import Counter

import pytest

from core.speed.ladder import GUESSES
from core.ui import guess
from core.ui.classroom.guesses import ASKED, finding
from core.ui.compare import timing_pitfalls
from tests import samples

BY_KEY = {each.key: each for each in ASKED}


@pytest.mark.parametrize(
    ("key", "measured", "answers"),
    [
        (
            "race_guess",
            samples.RACE,
            [*(each.name for each in samples.RACE.candidates), guess.CLOSE],
        ),
        ("timing_guess", samples.TIMING, timing_pitfalls.GUESSES),
        ("guess_two_workers", samples.CLIMBED, GUESSES),
    ],
)
def test_what_the_machine_said_is_one_of_the_answers(key, measured, answers):
    """With the figure that says so, as a ratio."""
    said = BY_KEY[key].right(measured)
    assert said is not None
    assert said[0] in answers
    assert float(said[1].removesuffix("×")) > 0


def test_the_class_is_held_against_the_machine():
    """How many had what it said; where it has said nothing, nothing is made up."""
    answers = Counter({"Slower": 3, "Up to 2 times as fast": 9})
    told = finding(answers, ("Slower", "0.9×"))
    assert told == (
        "**Of 12 guesses, 9 are “Up to 2 times as fast”; the machine said 0.9×**: "
        "“Slower”, as 3 had."
    )
    assert "has not measured it yet" in finding(answers, None)
    assert finding(Counter(), None) == "Nobody else has guessed yet."
