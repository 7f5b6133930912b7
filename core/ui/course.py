"""The course's pages in order, from content/course.toml, which a teacher can edit."""

import random
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import streamlit as st

from core.folders import CONTENT
from core.ui import questions
from core.ui.questions import Question
from to_device.errors import ExplainedError

LAST = 10  # questions at the end of the course


@dataclass(frozen=True)
class Lesson:
    file: str  # path from the project's root
    title: str
    icon: str
    promise: str  # one sentence on what you can do afterward
    task: str = ""  # the one thing to do on the lesson's page
    asks: str = ""  # the question that the lesson answers, in some eight words
    minutes: int = 0
    further: bool = False  # not needed to finish the course
    questions: tuple[Question, ...] = ()  # at the lesson's end
    # PyTorch's own pages to read: their addresses, keyed by their titles
    read: Mapping[str, str] = field(default_factory=dict)

    def solved(self, answers: Mapping[str, Any]) -> int:
        """How many questions somebody answered right, on any try."""
        return sum(question.is_solved(answers) for question in self.questions)

    def is_answered(self, answers: Mapping[str, Any]) -> bool:
        """Whether all questions were answered right, on any try and any page."""
        return bool(self.questions) and all(
            question.is_solved(answers) or question.is_earned(answers)
            for question in self.questions
        )

    def earned(self, answers: Mapping[str, Any]) -> int:
        """How many questions were right at first, or when they came again later."""
        return sum(question.is_earned(answers) for question in self.questions)

    def is_done(self, answers: Mapping[str, Any]) -> bool:
        return bool(self.questions) and self.earned(answers) == len(self.questions)


def _lesson(file: str, entry: dict[str, Any]) -> Lesson:
    icon, questions = f":material/{entry['icon']}:", _bank.get(entry["title"], ())
    return Lesson(file, **entry | {"icon": icon, "questions": questions})


_course = tomllib.loads(CONTENT.joinpath("course.toml").read_text(encoding="utf-8"))
_bank: dict[str, tuple[Question, ...]] = {}
BROKEN = ""  # why the questions can't be used; the lessons work without them
try:
    _titles = [lesson["title"] for lesson in _course["lessons"]]
    _bank = questions.read(CONTENT / questions.FILE, _titles)
except ExplainedError as error:
    BROKEN = str(error)
HOME = _lesson("home.py", _course["home"])
LESSONS = tuple(
    _lesson(f"pages/{number}_{lesson['title']}.py", lesson)
    for number, lesson in enumerate(_course["lessons"], 1)
)
RUNS = _lesson("pages/10_Runs.py", _course["runs"])
CLASS = _lesson("pages/11_Class.py", _course["class"])
TEACHER = _lesson("pages/12_Teacher.py", _course["teacher"])
PAGES = (HOME, *LESSONS, RUNS, CLASS, TEACHER)


def page(title: str) -> Lesson:
    return next(page for page in PAGES if page.title == title)


def of_address(address: str) -> Lesson | None:
    """The lesson whose jobs call the function at `address`; None if none does."""
    if address.startswith("core.training:"):
        return page("Train")
    packages = {f"core.lessons.{lesson.title.lower()}": lesson for lesson in LESSONS}
    return packages.get(".".join(address.split(".")[:3]))


def after(lesson: Lesson) -> Lesson | None:
    """The next lesson; None after the last one."""
    place = LESSONS.index(lesson) + 1
    return LESSONS[place] if place < len(LESSONS) else None


def again_on(lesson: Lesson, answers: Mapping[str, Any]) -> Question | None:
    """The question from at least two pages ago that comes again on a lesson's page.

    That is one that somebody hasn't earned yet, if there is one, and else one from
    exactly two pages ago; None if nobody has asked it so far. The question of this page
    stays the same once it has been answered here.
    """
    earlier = LESSONS[: max(0, LESSONS.index(lesson) - 1)]
    tried = _tried(reversed(earlier), answers)
    here = [q for q in tried if q.tries_at(lesson.title, answers)]
    unearned = [q for q in tried if not q.is_earned(answers)]
    two_ago = [q for q in tried if earlier and q in earlier[-1].questions]
    return next(iter((*here, *unearned, *two_ago)), None)


def unearned(answers: Mapping[str, Any]) -> list[Question]:
    """The questions that somebody has tried, but hasn't earned."""
    return [q for q in _tried(LESSONS, answers) if not q.is_earned(answers)]


def _tried(lessons: Iterable[Lesson], answers: Mapping[str, Any]) -> list[Question]:
    return [q for lesson in lessons for q in lesson.questions if q.tries(answers)]


def last_questions(answers: Mapping[str, Any], seed: str) -> list[Question]:
    """The questions for the end of the course, mixed, at most LAST of those tried.

    First of all those that aren't earned yet. The same `seed` gives the same order.
    """
    draw = random.Random(seed)
    first = unearned(answers)[:LAST]
    others = [q for q in _tried(LESSONS, answers) if q not in first]
    first = draw.sample(first, len(first))
    return first + draw.sample(others, min(len(others), LAST - len(first)))


def link(page: Lesson, label: str = "", **more: Any) -> None:
    options = {"label": label or page.title, "icon": page.icon} | more
    st.page_link(_streamlit_page(page.file), **options)


@cache
def _streamlit_page(file: str) -> Any:
    """Streamlit's page for a file. Cached, since each page has some 20 links."""
    return st.Page(file, default=file == HOME.file)
