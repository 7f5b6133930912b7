"""The course: its lessons in order, from course.toml, which a teacher can edit."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Question:
    """A question that the learner answers before the explanation shows."""

    key: str  # of the answer, in all that the learner has answered
    text: str
    right: str  # the answer that is
    answers: dict[str, str]  # each with what to say to somebody who chose it


@dataclass(frozen=True)
class Lesson:
    """One page."""

    file: str  # from the project's root, as st.page_link wants it
    title: str
    icon: str
    promise: str  # what you will be able to do after it, one sentence
    package: str = ""  # whose functions do what one asks for on this page
    asks: str = ""  # the question that it answers, in some eight words
    minutes: int = 0  # that it takes
    question: Question | None = None  # at its end

    def is_done(self, answers: Mapping[str, Any]) -> bool:
        """Whether the question at its end is among those answered, and rightly."""
        asked = self.question
        return asked is not None and answers.get(asked.key) == asked.right


def _lesson(file: str, told: dict[str, Any]) -> Lesson:
    told = told | {"icon": f":material/{told['icon']}:"}
    if "question" in told:
        asked = told["question"]
        told["question"] = Question(**asked | {"key": f"question_{asked['key']}"})
    return Lesson(file, **told)


_course = tomllib.loads(
    Path(__file__).parents[2].joinpath("course.toml").read_text(encoding="utf-8")
)
HOME = _lesson("home.py", _course["home"])
LESSONS = tuple(
    _lesson(f"pages/{number}_{told['title']}.py", told)
    for number, told in enumerate(_course["lessons"], 1)
)
RUNS = _lesson("pages/9_Runs.py", _course["runs"])
PAGES = (HOME, *LESSONS, RUNS)


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
