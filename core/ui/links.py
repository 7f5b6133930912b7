"""Links from page to page."""

from functools import cache
from typing import Any

import streamlit as st

from core.ui.course import HOME, Lesson


def link(to: Lesson, label: str = "", **more: Any) -> None:
    """A link to a page, by its own title and icon if by no other."""
    given = {"label": label or to.title, "icon": to.icon} | more
    st.page_link(_page(to.file), **given)


@cache
def _page(file: str) -> Any:
    """What Streamlit knows of the page: by its name it is looked for each time.

    Which takes longer than the rest of the link, of which a page has twenty.
    """
    return st.Page(file, default=file == HOME.file)
