"""What all sessions share (store, engine, class, answers), and who the visitor is."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from itertools import product
from typing import Any, Generic, TypeVar

import streamlit as st

from core.classroom.room import Room
from core.jobs.engine import Engine, in_background
from core.jobs.job import Job, Stored
from core.jobs.measurements import keep
from core.serving import monitoring
from core.serving.request_source import is_direct, network
from core.serving.streamlit_internals import give_back_turn, is_drawing
from core.serving.visitor_cookie import COOKIE, age, new, read
from core.store.codec import StoreError
from core.store.store import Store
from core.ui.format import counted
from to_device.errors import ExplainedError
from to_device.words import Words

Answer = TypeVar("Answer")
# How long a visitor's code may take, from the request to its end. This includes the
# wait in the queue, which is long while a whole class runs code.
CODE_SECONDS = 180.0

logger = logging.getLogger(__name__)
words = Words(__file__)
_tabs: Counter[str] = Counter()  # from a visitor to the number of open tabs
_tabs_of: Counter[str] = Counter()  # the same, from a network address
_pages: dict[str, str] = {}  # from a visitor with open tabs to the newest page
_tabs_lock = threading.Lock()


@cache
def store() -> Store:
    """The database. app.py opens it before the engine, and closes it last.

    If the database can't be used, the app continues with a store that lasts until the
    app stops. The store's `problem` says why.
    """
    try:
        return Store()
    except StoreError as error:
        logger.warning("data is kept only until the app stops: %s", error)
        return Store.temporary(str(error))


@cache
def room() -> Room:
    return Room(store().classes)


class PagesEngine(Engine):
    """An engine that lets another page be drawn while a page waits for an answer.

    It notes from which network a job comes, except those of an open class's members.
    """

    def submit(
        self, address: str, *arguments: Any, owner: str = "", **more: Any
    ) -> str:
        if is_drawing() and room().member(owner) is None:
            more["network"] = _network()
        return super().submit(address, *arguments, owner=owner, **more)

    def ask(self, address: str, *arguments: Any, **more: Any) -> Any:
        give_back_turn()
        return super().ask(address, *arguments, **more)


@cache
def engine() -> Engine:
    """The engine, which app.py starts and closes."""
    measurements = store().measurements

    def ended(job: Job) -> None:
        monitoring.count_job(job)
        room().note_end(job)
        in_background(keep, measurements, job)

    return PagesEngine(store=store(), on_end=ended, gate=room())


def ask(address: str, *arguments: Any, **more: Any) -> Any:
    """The lab worker's answer, for the visitor whose page is drawn, if there is one.

    `more` are arguments of `Engine.ask`.
    """
    if is_drawing():
        given = time.monotonic() - age(st.context.cookies.get(COOKIE, ""))
        more |= {"sender": _network(), "since": given}
    return engine().ask(address, *arguments, owner=visitor(), **more)


def run_code(doing: str, address: str, *arguments: Any) -> Any:
    """The answer of a function that runs a visitor's code.

    Until the answer comes, a spinner shows after how many other programs it is the
    code's turn, and then what is being done (`doing`).
    """
    ahead = engine().ahead(visitor(), "code")
    with ExitStack() as shown:

        def show(text: str) -> None:
            shown.close()
            shown.enter_context(st.spinner(text, show_time=True))

        on_turn = None
        if ahead:
            show(f"Waiting for {counted(ahead, 'other program')}")
            on_turn = partial(show, doing)
        else:
            show(doing)
        more: dict[str, Any] = {"seconds": CODE_SECONDS, "lane": "code"}
        return ask(address, *arguments, on_turn=on_turn, **more)


def ask_once(address: str, *arguments: Any) -> Any:
    """The answer from `ask`, kept for every visitor who asks the same later."""
    return cached_ask()(address, *arguments)


# Each drops from a cache what it has of a visitor whose data is deleted. They get the
# visitor, and the ids of the runs that the visitor made or measured.
FORGET: list[Callable[[str, Collection[str]], object]] = []


def ask_of_model(address: str, stored: Stored) -> Any:
    """The answer of `ask_once` about a run's checkpoint, until the run is deleted."""
    _of_models.add(address)
    return ask_once(address, stored)


_of_models: set[str] = set()  # the addresses that `ask_of_model` was called with


def _forget_models(_: str, models: Collection[str]) -> None:
    for address, run_id in product(tuple(_of_models), models):
        cached_ask().clear(address, Stored(run_id))


FORGET.append(_forget_models)


@cache
def cached_ask() -> Any:
    """`ask` with a cache, made at the first call: at import, Streamlit would warn."""
    return st.cache_data(max_size="100MB", show_spinner=False)(ask)


def in_child(address: str, *arguments: Any, seconds: float = 60) -> Any:
    """The result of a function that runs in its own process.

    If a broken driver makes that process hang or end, the worker continues.
    """
    call = "core.jobs.child_process:call_for"
    return engine().ask(call, seconds, address, *arguments, seconds=seconds)


class KeptAnswer(Generic[Answer]):
    """Keeps the newest answer to a question. The question is a function.

    Any thread may call this object to get the answer. The call waits only while there
    is no answer. If the answer is older than `seconds`, the call still returns it at
    once, and the question is asked again in the background.
    """

    def __init__(self, question: Callable[[], Answer], seconds: float) -> None:
        self._question, self._seconds = question, seconds
        self._lock = threading.Lock()  # guards the attributes below
        self.clear()

    def clear(self) -> None:
        """Forget the answer, so that the next caller waits for a new one."""
        self.newest: Answer | None = None
        self._came = 0.0
        self._asking: Future[Answer] | None = None

    def __call__(self) -> Answer:
        """The newest answer; waits if there is none. Raises the question's errors."""
        with self._lock:
            newest, asking = self.newest, self._asking
            stale = time.monotonic() > self._came + self._seconds
            if asking is None and (newest is None or stale):
                asking = self._asking = Future()
                in_background(self._ask, asking)
        if newest is not None:
            return newest
        assert asking is not None
        return asking.result()

    def _ask(self, asking: "Future[Answer]") -> None:
        answer = error = None
        try:
            answer = self._question()
        # Waiting callers get this error. The next caller asks again.
        except Exception as problem:
            error = problem
        with self._lock:
            if self._asking is asking:  # nobody called `clear` meanwhile
                self.newest, self._asking = answer, None
                self._came = time.monotonic()
        if error is None:
            asking.set_result(answer)  # type: ignore[arg-type]
        else:
            asking.set_exception(error)


@contextmanager
def explained(title: str) -> Iterator[None]:
    """Show an ExplainedError with this title instead of the rest of the block."""
    try:
        yield
    except ExplainedError as error:
        st.error(str(error), title=title, icon=":material/error:")


def knows_server() -> bool:
    """Whether this visitor may read paths and addresses of the server.

    The teacher may, and whoever sits at a machine that nobody else can reach.
    """
    # This module makes Streamlit caches, for which the runtime has to exist already.
    from core.serving.execution_policy import is_for_this_machine

    is_own = is_for_this_machine() and is_direct(st.context.headers)
    return is_own or room().is_teacher(visitor())


def engine_problem() -> str:
    """Why there are no workers, as this visitor may read it; "" if there are."""
    return told(engine().problem, words("no_workers"))


def store_problem() -> str:
    """Why some data is not being saved, as this visitor may read it; "" if all is."""
    return told(store().problem, words("not_kept"))


def told(problem: str, general: str) -> str:
    """`problem`, or `general` if it has a path or address that is not for everybody."""
    is_for_all = not any(mark in problem for mark in "/\\")
    return problem if is_for_all or knows_server() else general


@contextmanager
def noticed(outcome: str = "", at: str = "notice") -> Iterator[None]:
    """Keep an error of a button's callback for `tell_notice`, preceded by `outcome`.

    With another `at`, the name of a field or a form, keep it for `tell_error`.
    """
    try:
        yield
    except (ExplainedError, ValueError) as error:
        st.session_state[at] = f"{outcome} {error}".strip()


def tell_notice(toast: bool = False) -> None:
    """Show once why a button's action wasn't possible.

    Use a toast where the page may be scrolled away from the place of a warning.
    """
    if why := st.session_state.pop("notice", ""):
        if toast:
            st.toast(why, icon=":material/info:", duration="long")
        else:
            st.warning(why, icon=":material/info:")


def tell_error(at: str) -> None:
    """Show once, at a field or a form, why what was entered can't be used."""
    if why := st.session_state.pop(at, ""):
        st.error(why, icon=":material/error:")


def visitor() -> str:
    """An id for this browser, the same in all its tabs and after a reload.

    Without a cookie, each session has its own id. The server's own work has no session,
    and its visitor is "".
    """
    if not is_drawing():
        return ""
    return visitor_of_cookie() or st.session_state.setdefault("visitor", new())


def visitor_drawn() -> str:
    """The visitor whose page this thread draws, for the log; "" without a page."""
    return visitor_of_cookie() if is_drawing() else ""


def visitor_of_cookie() -> str:
    """The id in the browser's cookie; "" without a cookie."""
    return read(st.context.cookies.get(COOKIE, ""))


def open_pages() -> dict[str, str]:
    """Return {visitor: title of the page opened last} for visitors with open tabs."""
    with _tabs_lock:
        return {visitor: _pages.get(visitor, "") for visitor in _tabs}


def count_of_tabs() -> int:
    """How many tabs are open: of each other address, at most as many as of this one.

    So nobody gets the news later because of many tabs at one other address.
    """
    with _tabs_lock:
        own = _tabs_of[_network()]
        return sum(min(count, own) for count in _tabs_of.values())


def count_tabs(more: int, visitor: str, address: str) -> None:
    with _tabs_lock:
        for tabs, whose in ((_tabs, visitor), (_tabs_of, address)):
            tabs[whose] += more
            if not tabs[whose]:
                del tabs[whose]
        if visitor not in _tabs:
            _pages.pop(visitor, None)


@st.cache_resource(
    show_spinner=False,
    scope="session",
    on_release=lambda tab: count_tabs(-1, *tab),
)
def _come() -> tuple[str, str]:
    """Count this tab until it is closed; returns its visitor and its address."""
    tab = visitor(), _network()
    count_tabs(1, *tab)
    return tab


def come(page: str) -> None:
    """Count this tab as open, and `page` (a title) as its visitor's newest page."""
    visitor_id, _ = _come()
    with _tabs_lock:
        if visitor_id in _tabs:
            _pages[visitor_id] = page


def _network() -> str:
    """The network address of the visitor whose page is drawn."""
    return network(st.context.ip_address or "")
