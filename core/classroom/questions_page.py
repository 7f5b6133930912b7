"""For the teacher: how the class answered the questions at the lessons' ends."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from core.store.tables import Class
from core.ui import course
from core.ui.polling import PATIENT_SECONDS
from core.ui.questions import Question
from core.ui.server import store

KEYS = [question.key for lesson in course.LESSONS for question in lesson.questions]


@dataclass(frozen=True)
class Score:
    """How a class answered a question on the first try."""

    lesson: str
    question: Question
    answered: int
    right: int
    mistaken: str  # the most frequent wrong answer; "" if there was none

    @property
    def text(self) -> str:
        if self.answered == 1:
            whether = "right" if self.right else "wrong"
            return f"one person answered it, {whether} on the first try."
        count = f"{self.right} of {self.answered}"
        return f"{count} people got it right on the first try."


def scores(answers: Mapping[str, Mapping[str, Any]]) -> list[Score]:
    """All answered questions, the hardest first.

    `answers` are keyed by the question's key, and then by visitor.
    """
    all_scores = []
    for lesson in course.LESSONS:
        for question in lesson.questions:
            by_visitor = answers.get(question.key, {}).values()
            all_tries = (question.tries({question.key: a}) for a in by_visitor)
            firsts = Counter(tries[0] for tries in all_tries if tries)
            answered, right = firsts.total(), firsts.pop(question.right, 0)
            mistaken = firsts.most_common(1)[0][0] if firsts else ""
            if answered:
                score = Score(lesson.title, question, answered, right, mistaken)
                all_scores.append(score)
    return sorted(
        all_scores, key=lambda score: (score.right / score.answered, -score.answered)
    )


def of_class(classroom: Class) -> list[Score]:
    return scores(store().answers.of_class(classroom.id, KEYS))


@st.fragment(run_every=PATIENT_SECONDS)
def draw(classroom: Class) -> None:
    """Draw the hardest question in full, and a table of all answered questions."""
    all_scores = of_class(classroom)
    if not all_scores:
        st.markdown("Nobody in this class has answered a question yet.")
        return
    hardest, question = all_scores[0], all_scores[0].question
    if hardest.mistaken:
        st.markdown(f"**The hardest question: {hardest.text}** {question.text}")
        if question.code:
            st.code(question.code, line_numbers=True, wrap_lines=True)
        st.markdown(
            f":material/close: The most common wrong answer: {hardest.mistaken}\n\n"
            f":material/check: {question.right}: {question.answers[question.right]}"
        )
    else:
        st.markdown("**So far, every answer was right on the first try.**")
    rows = [
        (s.lesson, s.question.text.replace("`", ""), s.right, s.answered)
        for s in all_scores
    ]
    # st.table shows long questions in full; st.dataframe would cut them.
    names = ("Lesson", "Question", "Right on the first try", "Answered")
    st.table(pd.DataFrame(rows, columns=names).set_index("Lesson"))
