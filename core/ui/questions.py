"""The questions at the lessons' ends, which a teacher can edit in content/."""

import random
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from to_device.dryrun.report import Request
from to_device.errors import ExplainedError

FILE = "questions.toml"
FIELDS = {"key": str, "text": str, "right": dict, "wrong": dict}
OPTIONAL = {"code": str, "gpu": bool, "measured": bool, "check": str}
WRONG = 2  # the fewest wrong answers to a question


@dataclass(frozen=True)
class Question:
    """A question. In the methods, `answers_by_key` maps keys to a learner's answers."""

    key: str
    text: str
    right: str
    answers: dict[str, str]  # all answers, each with a reply to people who choose it
    code: str = ""  # shown above the question
    gpu: bool = True  # whether the code runs with a simulated GPU
    measured: bool = False  # the code measures, so its output depends on the machine
    check: str = ""  # Python that proves the right answer, for the tests

    def tries(self, answers_by_key: Mapping[str, Any]) -> list[str]:
        """The learner's answers: the first try, then others, the newest one last."""
        tries = answers_by_key.get(self.key, [])
        if not isinstance(tries, list):  # an older version stored a single answer
            tries = [tries]
        return [answer for answer in tries if answer in self.answers]

    def after(self, tries: list[str], chosen: str) -> list[str]:
        """The tries with `chosen` at the end.

        The first try always stays. After it, each answer is there only once.
        """
        others = [answer for answer in tries[1:] if answer != chosen]
        return [*tries[:1], *others, chosen]

    def is_solved(self, answers_by_key: Mapping[str, Any]) -> bool:
        return self.right in self.tries(answers_by_key)

    def at_first(self, answers_by_key: Mapping[str, Any]) -> bool:
        return self.tries(answers_by_key)[:1] == [self.right]

    @property
    def again_key(self) -> str:
        """What the answers are kept under that were given where it came again."""
        return f"again_{self.key}"

    def tries_at(self, place: str, answers_by_key: Mapping[str, Any]) -> list[str]:
        """The answers at a place where the question came again, in the order given."""
        tries = (answers_by_key.get(self.again_key) or {}).get(place, [])
        return [answer for answer in tries if answer in self.answers]

    def is_earned(self, answers_by_key: Mapping[str, Any]) -> bool:
        """Whether the first answer was right, on its own page or at a later place."""
        places = answers_by_key.get(self.again_key) or {}
        firsts = [self.tries_at(place, answers_by_key)[:1] for place in places]
        return self.at_first(answers_by_key) or [self.right] in firsts

    def request(self) -> Request:
        """The request for a dry run of the code, with or without a simulated GPU."""
        return Request("question.py", self.code, seconds=9, simulates=self.gpu)

    def shuffled(self, visitor: str) -> list[str]:
        """The answers in an order that stays the same for this visitor."""
        order = list(self.answers)
        random.Random(f"{visitor} {self.key}").shuffle(order)
        return order


def read(file: Path, lessons: Collection[str]) -> dict[str, tuple[Question, ...]]:
    """Read {lesson's title: questions} from a file. `lessons` has all valid titles.

    Raises ExplainedError if the file can't be read, or if a question is broken: the
    error says which question, and what is wrong.
    """
    try:
        bank = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no file, no UTF-8, or no TOML
        why = getattr(error, "strerror", None) or error
        raise ExplainedError(f"{FILE} can't be read: {why}.") from error
    questions: dict[str, tuple[Question, ...]] = {}
    try:
        for lesson, entries in bank.items():
            name = f"[[{lesson}]]"
            if lesson not in lessons:
                names = ", ".join(lessons)
                raise ValueError(f"{name} is not a lesson; the lessons are {names}")
            if not isinstance(entries, list):
                raise ValueError(f"each question of {lesson} must begin with {name}")
            questions[lesson] = tuple(
                _question(f"question {number} of {lesson}", lesson, entry)
                for number, entry in enumerate(entries, 1)
            )
        keys = Counter(entry["key"] for entries in bank.values() for entry in entries)
        if twice := [key for key, count in keys.items() if count > 1]:
            problem = f"two questions have the key {twice[0]!r}"
            raise ValueError(f"{problem}; change one of the two keys")
    except ValueError as error:
        raise ExplainedError(f"{FILE}: {error}.") from None
    return questions


def _question(where: str, lesson: str, entry: dict[str, Any]) -> Question:
    for name, kind in (FIELDS | OPTIONAL).items():
        if name in OPTIONAL and name not in entry:
            continue
        if name in FIELDS and not entry.get(name):
            raise ValueError(f"{where} has no {name!r}")
        if not isinstance(entry[name], kind):
            nouns = {dict: f"a table, [{lesson}.{name}]", bool: "true or false"}
            noun = nouns.get(kind, "text in quotation marks")
            raise ValueError(f"{where}: {name!r} must be {noun}")
    if others := sorted(entry.keys() - FIELDS.keys() - OPTIONAL.keys()):
        names = ", ".join(FIELDS | OPTIONAL)
        raise ValueError(f"{where} has {others[0]!r}, which is not one of {names}")
    right, wrong = entry["right"], entry["wrong"]
    for answer, reply in (*right.items(), *wrong.items()):
        if not isinstance(reply, str) or not reply.strip():
            raise ValueError(f"{where}: the answer {answer!r} has no reply")
    if len(right) != 1:
        raise ValueError(f"{where} has {len(right)} right answers instead of one")
    if len(wrong) < WRONG:
        raise ValueError(f"{where} has fewer than {WRONG} wrong answers")
    if both := sorted(right.keys() & wrong.keys()):
        raise ValueError(f"{where}: the answer {both[0]!r} is both right and wrong")
    (answer,) = right
    optional = {name: entry[name] for name in OPTIONAL if name in entry}
    answers, key = right | wrong, f"question_{entry['key']}"
    return Question(key, entry["text"], answer, answers, **optional)
