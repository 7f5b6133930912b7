"""The course map: each lesson, how long it takes, what this machine has earned."""

import streamlit as st

from core.ui import answers
from core.ui.course import LESSONS
from core.ui.links import link


def draw(earned: dict[str, str]) -> None:
    """A card a lesson; `earned` has a figure for some of their titles."""
    given = answers.given()
    with st.grid(columns=3, min_column_width=150):
        for number, lesson in enumerate(LESSONS, 1):
            with st.container(border=True, height="stretch", gap="xsmall"):
                done = " :green[:material/check:]" if lesson.is_done(given) else ""
                title = f"**{number}. {lesson.title}**{done}"
                link(lesson, title)
                st.markdown(lesson.asks)
                figure = earned.get(lesson.title)
                known = f" · **{figure}**" if figure else ""
                asked, solved = len(lesson.questions), lesson.solved(given)
                if 0 < solved < asked:
                    known += f" · {solved} of {asked} answered"
                st.markdown(f":small[{lesson.minutes} min{known}]")
