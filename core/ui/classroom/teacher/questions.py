"""What the class got wrong in the questions at the lessons' ends."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from core.ui import course, figures
from core.ui.course import Lesson
from core.ui.questions import Question

Given = Mapping[str, Mapping[str, Any]]  # by the question's key, then by the person
KEYS = [each.key for lesson in course.LESSONS for each in lesson.questions]


@dataclass(frozen=True)
class Asked:
    """A question, and how the class answered it at the first try."""

    lesson: str
    question: Question
    answered: int
    right: int
    mistaken: str  # what most of the others took for right; empty where none did

    @property
    def score(self) -> tuple[int, int]:
        """How many were right, of how many."""
        return self.right, self.answered

    @property
    def share(self) -> float:
        return self.right / self.answered


def asked(lessons: Iterable[Lesson], given: Given) -> list[Asked]:
    """The questions that somebody has answered; the hardest first."""
    found = []
    for lesson in lessons:
        for question in lesson.questions:
            kept = (
                {question.key: each} for each in given.get(question.key, {}).values()
            )
            firsts = [tries[0] for each in kept if (tries := question.tries(each))]
            wrong = Counter(each for each in firsts if each != question.right)
            if firsts:
                right = len(firsts) - wrong.total()
                mistaken = wrong.most_common(1)[0][0] if wrong else ""
                told = (lesson.title, question, len(firsts), right, mistaken)
                found.append(Asked(*told))
    return sorted(found, key=lambda each: (each.share, -each.answered))


def draw(given: Given) -> None:
    """The hardest question in full, and a table of all that were answered."""
    found = asked(course.LESSONS, given)
    if not found:
        st.markdown("Nobody in this class has answered a question yet.")
        return
    hardest = found[0]
    if hardest.mistaken:
        st.markdown(
            f"**The hardest: {hardest.right} of {hardest.answered} were right at the "
            f"first try.** {hardest.question.text}"
        )
        st.markdown(
            f":material/close: Most often taken for right: {hardest.mistaken}\n\n"
            f":material/check: {hardest.question.right}: "
            f"{hardest.question.answers[hardest.question.right]}"
        )
    else:
        st.markdown("**Everything was answered right at the first try.**")
    figures.table(
        [
            (
                each.lesson,
                each.question.text.replace("`", ""),
                each.right,
                each.answered,
            )
            for each in found
        ],
        ("Lesson", "Question", "Right at first", "Answered"),
        alt="How the class answered each question at the first try, the hardest first",
    )
