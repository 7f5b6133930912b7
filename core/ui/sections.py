"""Tabs of a page, of which only the open one is drawn."""

from collections.abc import Callable, Collection, Mapping

import streamlit as st


def sections(
    drawn: Mapping[str, Callable[[], None]], always: Collection[str] = ()
) -> None:
    """Tabs by their names, with what draws each; the open one stands in the address.

    Those named in `always` are drawn also where they are closed: a file that was sent
    is forgotten with the field that it was dropped on.
    """
    tabs = st.tabs(list(drawn), key="tab", bind="query-params")
    for tab, (name, draw) in zip(tabs, drawn.items(), strict=True):
        if tab.open or name in always:
            with tab:
                draw()
