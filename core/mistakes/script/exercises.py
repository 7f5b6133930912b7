"""The exercises of exercises.toml, and whether what somebody wrote solves one."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.mistakes.script.check import RULES
from core.mistakes.script.goals import GOALS
from core.mistakes.script.reading import Script, UnreadableError, called, dotted

FILE = Path(__file__).parents[3] / "exercises.toml"
MOST_CHARACTERS = 2_000  # few enough for the web server to read them at once
BY_NAME = {each.__name__: each for each in RULES}


@dataclass(frozen=True)
class Exercise:
    """A few lines with a mistake, and what has to be so once it is mended."""

    ask: str
    code: str
    solution: str  # one of several
    right: str  # what to say to it
    goals: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # that may find nothing
    keep: tuple[str, ...] = ()  # what is called still

    def __post_init__(self) -> None:
        unknown = {*self.goals} - {*GOALS} | {*self.rules} - {*BY_NAME}
        if unknown:
            raise ValueError(f"there is no goal or rule {sorted(unknown)[0]}")


@dataclass(frozen=True)
class Verdict:
    """Whether it is solved, and a sentence about it."""

    solved: bool
    say: str


def load(file: Path = FILE) -> Mapping[str, Exercise]:
    """The exercise of each lesson, by its title. ValueError says what is wrong."""
    try:
        told = tomllib.loads(file.read_text("utf-8"))
        return {title: _exercise(each) for title, each in told.items()}
    except (OSError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{file.name} can't be read: {error}") from None


def _exercise(told: Mapping[str, Any]) -> Exercise:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value.strip("\n")
        for key, value in told.items()
    }
    return Exercise(**fields)


def judge(exercise: Exercise, text: str) -> Verdict:
    """What is right or still missing; the first thing alone."""
    if len(text) > MOST_CHARACTERS:
        return Verdict(False, "That is too long: change only what is wrong.")
    try:
        return _judge(exercise, Script(text))
    except UnreadableError as error:
        return Verdict(False, str(error))
    except RecursionError:
        return Verdict(False, "Something in it is nested too deeply.")


def _judge(exercise: Exercise, script: Script) -> Verdict:
    there = {called(each) for each in script.calls}
    there |= {dotted(each.func) for each in script.calls}
    for name in exercise.keep:
        if name not in there:
            return Verdict(False, f"`{name}(...)` is gone. Change only what is wrong.")
    for goal in exercise.goals:
        if missing := GOALS[goal](script):
            return Verdict(False, missing)
    for rule in exercise.rules:
        for found in BY_NAME[rule](script):
            return Verdict(False, f"Line {found.line}: {found.say}")
    return Verdict(True, exercise.right)
