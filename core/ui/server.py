"""The store, the engine and the class that all sessions share, and who a visitor is."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.classroom.room import Room
from core.errors import ExplainedError
from core.jobs import measurements as measured
from core.jobs.engine import Engine, in_background
from core.jobs.job import Job
from core.serving import monitoring, streamlit_patches
from core.serving.visitor_cookie import COOKIE, new, read
from core.store.codec import StoreError
from core.store.store import Store

logger = logging.getLogger(__name__)


@cache
def store() -> Store:
    """The database; app.py opens it before the engine and closes it after.

    If it can't be used, the app goes on with one in memory, whose `problem` says why.
    """
    try:
        return Store()
    except StoreError as error:
        logger.warning("nothing is kept: %s", error)
        return Store.passing(str(error))


@cache
def room() -> Room:
    """The open class, if there is one."""
    return Room(store().classes)


class PagesEngine(Engine):
    """Lets the next page be drawn while one waits for an answer."""

    def ask(self, address: str, *arguments: Any, **more: Any) -> Any:
        streamlit_patches.give_back_turn()
        return super().ask(address, *arguments, **more)


@cache
def engine() -> Engine:
    """The engine, which app.py starts and closes."""
    measurements = store().measurements

    def ended(job: Job) -> None:
        monitoring.count_job(job)
        in_background(measured.keep, measurements, job)

    return PagesEngine(store=store(), on_end=ended, gate=room())


def ask(
    address: str, *arguments: Any, seconds: float = 30.0, lane: str = "question"
) -> Any:
    """Engine.ask for this visitor."""
    return engine().ask(
        address, *arguments, seconds=seconds, owner=visitor(), lane=lane
    )


def apart(address: str) -> Any:
    """The result of a function without arguments, in a process of its own.

    A broken driver may hang or end it, and its random numbers are its own.
    """
    return engine().ask("core.jobs.sandbox:call", address, seconds=60)


@contextmanager
def explained(title: str) -> Iterator[None]:
    """Show an ExplainedError with this title instead of the rest of the block."""
    try:
        yield
    except ExplainedError as error:
        st.error(str(error), title=title, icon=":material/error:")


@contextmanager
def noticed() -> Iterator[None]:
    """What goes wrong in it, in a button's callback, is for tell_notice."""
    try:
        yield
    except (ExplainedError, ValueError) as error:
        st.session_state.notice = str(error)


def tell_notice() -> None:
    """Show once why what a button was to do can't be done."""
    if why := st.session_state.pop("notice", ""):
        st.warning(why, icon=":material/info:")


def visitor() -> str:
    """A name for this browser, the same in all its tabs and after a reload.

    A session without a cookie has a name of its own. The server's own work has no
    session and no owner: "".
    """
    if get_script_run_ctx(suppress_warning=True) is None:
        return ""
    return visitor_of_cookie() or st.session_state.setdefault("visitor", new())


def served() -> str:
    """The visitor whose page this thread draws, for the log; "" if it draws none."""
    drawing = get_script_run_ctx(suppress_warning=True) is not None
    return visitor_of_cookie() if drawing else ""


def visitor_of_cookie() -> str:
    """The id in the browser's cookie; "" without one."""
    return read(st.context.cookies.get(COOKIE, ""))
