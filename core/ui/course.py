"""The course: its lessons in order, from course.toml, which a teacher can edit."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import ExplainedError
from core.ui import questions
from core.ui.questions import Question


@dataclass(frozen=True)
class Lesson:
    """One page."""

    file: str  # from the project's root
    title: str
    icon: str
    promise: str  # what you will be able to do after it, one sentence
    package: str = ""  # whose functions do what one asks for on this page
    asks: str = ""  # the question that it answers, in some eight words
    minutes: int = 0  # that it takes
    questions: tuple[Question, ...] = ()  # at its end
    read: Mapping[str, str] = field(default_factory=dict)  # PyTorch's own, by title

    def solved(self, given: Mapping[str, Any]) -> int:
        """How many of its questions were answered right, at whatever try."""
        return sum(each.is_solved(given) for each in self.questions)

    def is_done(self, given: Mapping[str, Any]) -> bool:
        """Whether all of them were."""
        return bool(self.questions) and self.solved(given) == len(self.questions)


def _lesson(file: str, told: dict[str, Any]) -> Lesson:
    icon, asked = f":material/{told['icon']}:", _bank.get(told["title"], ())
    return Lesson(file, **told | {"icon": icon, "questions": asked})


ROOT = Path(__file__).parents[2]
_course = tomllib.loads(ROOT.joinpath("course.toml").read_text(encoding="utf-8"))
_bank: dict[str, tuple[Question, ...]] = {}
BROKEN = ""  # why nothing is asked, in a sentence; the lessons are there all the same
try:
    _titles = [each["title"] for each in _course["lessons"]]
    _bank = questions.read(ROOT / questions.FILE, _titles)
except ExplainedError as error:
    BROKEN = str(error)
HOME = _lesson("home.py", _course["home"])
LESSONS = tuple(
    _lesson(f"pages/{number}_{told['title']}.py", told)
    for number, told in enumerate(_course["lessons"], 1)
)
RUNS = _lesson("pages/10_Runs.py", _course["runs"])
CLASS = _lesson("pages/11_Class.py", _course["class"])
TEACHER = _lesson("pages/12_Teacher.py", _course["teacher"])
PAGES = (HOME, *LESSONS, RUNS, CLASS, TEACHER)


def page(title: str) -> Lesson:
    """The page of that title: a lesson, or one that stands apart."""
    return next(each for each in PAGES if each.title == title)


def of_address(address: str) -> Lesson | None:
    """The lesson that a job belongs to, by the address of its function."""
    module = address.partition(":")[0]
    named = (each for each in LESSONS if each.package)
    return next((each for each in named if module.startswith(each.package)), None)


def after(this: Lesson) -> Lesson | None:
    """The next lesson; None after the last."""
    place = LESSONS.index(this) + 1
    return LESSONS[place] if place < len(LESSONS) else None
