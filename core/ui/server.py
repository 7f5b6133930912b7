"""What all sessions of this server share, and how they are told apart."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.classroom.room import Room
from core.errors import ExplainedError
from core.jobs import measured
from core.jobs.engine import Engine, in_background
from core.jobs.job import Job
from core.store.codec import StoreError
from core.store.store import Store
from core.ui import metrics, page_turns
from core.ui.visitor import COOKIE, new, read

logger = logging.getLogger(__name__)


@cache
def store() -> Store:
    """What this server remembers; open before the engine, closed after it: see app.py.

    Where the database can't be used the app goes on with one that ends with it, whose
    `problem` says why.
    """
    try:
        return Store()
    except StoreError as error:
        logger.warning("nothing is kept: %s", error)
        return Store.passing(str(error))


@cache
def room() -> Room:
    """The class that is open, if one is; nothing of it is on disk but in the store."""
    return Room(store().classes)


class PagesEngine(Engine):
    """While a page waits for an answer, the next one is drawn."""

    def ask(self, address: str, *arguments: Any, **more: Any) -> Any:
        page_turns.give_back()
        return super().ask(address, *arguments, **more)


@cache
def engine() -> Engine:
    """The one engine of this server, which starts and closes it: see app.py."""
    measurements = store().measurements

    def ended(job: Job) -> None:
        metrics.ended(job)
        in_background(measured.keep, measurements, job)

    return PagesEngine(store=store(), on_end=ended, gate=room())


def ask(
    address: str, *arguments: Any, seconds: float = 30.0, lane: str = "question"
) -> Any:
    """What the lab answers this visitor; see Engine.ask."""
    return engine().ask(
        address, *arguments, seconds=seconds, owner=visitor(), lane=lane
    )


def apart(address: str) -> Any:
    """What code without arguments returns, run in a process of its own.

    A broken driver may hang or end it; its random numbers are nobody else's.
    """
    return engine().ask("core.jobs.sandbox:call", address, seconds=60)


@contextmanager
def explained(title: str) -> Iterator[None]:
    """An ExplainedError in it is shown, with this title, in the place of the rest."""
    try:
        yield
    except ExplainedError as error:
        st.error(str(error), title=title, icon=":material/error:")


def visitor() -> str:
    """A name for this browser: the same in all its tabs, and after a reload.

    A session without a cookie has a name of its own, and what the server does by itself
    is of no session: that is of nobody, as jobs and questions without an owner are.
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        return ""
    return visitor_of_cookie() or st.session_state.setdefault("visitor", new())


def served() -> str:
    """Whose page this thread draws, for the log; empty where it draws none."""
    drawing = get_script_run_ctx(suppress_warning=True) is not None
    return visitor_of_cookie() if drawing else ""


def visitor_of_cookie() -> str:
    """Who the browser's cookie says it is; empty where it has none."""
    return read(st.context.cookies.get(COOKIE, ""))
