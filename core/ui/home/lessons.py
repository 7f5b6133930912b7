"""The course map: each lesson, how long it takes, what this machine has earned."""

import streamlit as st

from core.ui.course import LESSONS


def draw(earned: dict[str, str]) -> None:
    """A card a lesson; `earned` has a figure for some of their titles."""
    with st.grid(columns=4, min_column_width=150):
        for number, lesson in enumerate(LESSONS, 1):
            with st.container(border=True, height="stretch", gap="xsmall"):
                st.page_link(
                    lesson.file, label=f"**{number}. {lesson.title}**", icon=lesson.icon
                )
                st.markdown(lesson.asks)
                figure = earned.get(lesson.title)
                known = f" · **{figure}**" if figure else ""
                st.markdown(f":small[{lesson.minutes} min{known}]")
