"""What teachers did: who, when and what."""

from datetime import datetime

import streamlit as st

from core.store.classes import Class
from core.ui import figures
from core.ui.server import store


def draw(chosen: Class) -> None:
    """The newest first; with what is of no class, as one that was deleted."""
    every = st.toggle("Of all classes, the deleted too", key="log_of_all")
    figures.table(
        [
            (
                f"{datetime.fromtimestamp(each.at):%Y-%m-%d %H:%M:%S}",
                each.who,
                each.what,
            )
            for each in store().classes.acts(None if every else chosen.id)
        ],
        ("When", "Who", "What"),
        alt="What teachers did, the newest first",
    )
