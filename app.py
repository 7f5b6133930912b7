"""The server: what starts and ends with it. What a visitor sees first is home.py.

`streamlit run app.py` finds `app` by reading this file.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st

from core.ui.server import engine


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """The workers are up before the first visitor comes, and end with the server."""
    engine()
    yield
    engine().close()


app = st.App("home.py", lifespan=lifespan)
