"""The questions at the end of the lessons: questions.toml, which a teacher can edit."""

import random
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import ExplainedError

FILE = "questions.toml"
FIELDS = ("key", "text", "right", "wrong")
WRONG = 2  # wrong answers of a question, at least


@dataclass(frozen=True)
class Question:
    """A question that the learner answers before the explanation shows."""

    key: str  # of what is kept of it, among all that the learner has answered
    text: str
    right: str  # the answer that is
    answers: dict[str, str]  # each with what to say to somebody who chose it

    def tries(self, given: Mapping[str, Any]) -> list[str]:
        """What has been chosen: the first try, others, and the newest at the end."""
        kept = given.get(self.key, [])
        tries = kept if isinstance(kept, list) else [kept]  # once there was only one
        return [each for each in tries if each in self.answers]

    def after(self, tries: list[str], chosen: str) -> list[str]:
        """Those tries and one more; what was tried before stands there once."""
        return [*tries[:1], *(each for each in tries[1:] if each != chosen), chosen]

    def is_solved(self, given: Mapping[str, Any]) -> bool:
        """Whether it was answered right, at whatever try."""
        return self.right in self.tries(given)

    def at_first(self, given: Mapping[str, Any]) -> bool:
        """Whether it was answered right on the first try."""
        return self.tries(given)[:1] == [self.right]

    def shuffled(self, visitor: str) -> list[str]:
        """The answers, in an order that this visitor always finds them in."""
        order = list(self.answers)
        random.Random(f"{visitor} {self.key}").shuffle(order)
        return order


def read(file: Path, lessons: Collection[str]) -> dict[str, tuple[Question, ...]]:
    """The questions of each lesson, by its title.

    An entry that is broken is an ExplainedError: of which lesson, and what it lacks.
    """
    try:
        bank = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no file, no UTF-8, or no TOML
        why = getattr(error, "strerror", None) or error
        raise ExplainedError(f"{FILE} can't be read: {why}.") from error
    found = {}
    for lesson, told in bank.items():
        if lesson not in lessons:
            raise _broken(f"[[{lesson}]] is no lesson; there are {', '.join(lessons)}")
        if not isinstance(told, list):
            raise _broken(f"a question of {lesson} begins with [[{lesson}]]")
        found[lesson] = tuple(
            _question(lesson, number, each) for number, each in enumerate(told, 1)
        )
    keys = [each.key for questions in found.values() for each in questions]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        key = twice[0].removeprefix("question_")
        raise _broken(f"two questions have the key {key!r}, so one needs another")
    return found


def _question(lesson: str, number: int, told: dict[str, Any]) -> Question:
    where = f"question {number} of {lesson}"
    for name in FIELDS:
        if not told.get(name):
            raise _broken(f"{where} has no {name!r}")
    if others := sorted(set(told) - set(FIELDS)):
        raise _broken(
            f"{where} has {others[0]!r}, which is none of {', '.join(FIELDS)}"
        )
    for name in ("key", "text"):
        if not isinstance(told[name], str):
            raise _broken(f"{where}: {name!r} is not a text in quotation marks")
    for name in ("right", "wrong"):
        if not isinstance(told[name], dict):
            raise _broken(f"{where}: {name!r} is not a table, [{lesson}.{name}]")
        for answer, said in told[name].items():
            if not isinstance(said, str) or not said.strip():
                raise _broken(f"{where}: the answer {answer!r} says nothing")
    right, wrong = told["right"], told["wrong"]
    if len(right) != 1:
        raise _broken(f"{where} has {len(right)} right answers instead of one")
    if len(wrong) < WRONG:
        raise _broken(f"{where} has fewer than {WRONG} wrong answers")
    if both := sorted(set(right) & set(wrong)):
        raise _broken(f"{where}: the answer {both[0]!r} is both right and wrong")
    return Question(
        f"question_{told['key']}", told["text"], next(iter(right)), right | wrong
    )


def _broken(what: str) -> ExplainedError:
    return ExplainedError(f"{FILE}: {what}.")
