"""The way into a class: the address to join at, and that as a picture for phones."""

import segno
import streamlit as st

from core.store.classes import Class
from core.ui.charts.base import LIGHT

PIXELS = 220


def address(page: str, query: str = "") -> str:
    """Where a page of this server is, as this browser reaches it."""
    base = (st.context.url or "").partition("?")[0].rpartition("/")[0]
    return f"{base}/{page}{'?' * bool(query)}{query}"


def draw(opened: Class) -> str:
    """The code for phones; returns the address that it stands for."""
    link = address("Class", f"code={opened.code}")
    # Dark on light in both themes: not every phone reads the inverse.
    drawn = segno.make(link, error="m").svg_inline(
        scale=6, border=4, dark=LIGHT.text, light=LIGHT.page
    )
    st.image(drawn, alt=f"A code for phones to open {link}", width=PIXELS)
    return link
