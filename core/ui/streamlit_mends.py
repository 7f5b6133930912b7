"""What a class would suffer from in Streamlit 1.67, mended from outside.

None of it has a setting. requirements-web.txt keeps to this version: what is mended is
not meant to be touched, and the next one may not need it.
"""

import gc
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

import uvicorn
from streamlit.components.v2.bidi_component import main as bidi_component
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.session_manager import ActiveSessionInfo

from core.ui import page_turns

Kind = TypeVar("Kind")
GATHER_SECONDS = 0.005
GRACE_SECONDS = 5  # for connections to close when the server ends


def mend() -> None:
    """All of it, once the server listens."""
    send_at_once()
    draw_pages_in_turn()
    gather_what_scripts_say()
    tell_the_theme_once()
    watch_no_files()
    let_scripts_end()
    let_go_of_threads()
    present_values_as_they_are()
    send_on_the_newest_connection()
    end_in_time()


def send_at_once() -> None:
    """Have what the server sends leave it at once, in small packets too.

    asyncio turns Nagle's algorithm off only for sockets that say they are TCP, which
    the one that Streamlit listens on does not. So each answer on a connection that is
    kept waited 40 ms for the browser to confirm the packet before it. What connects
    to a listening socket inherits the setting.
    """
    for each in _living(socket.socket):
        if each.family not in (socket.AF_INET, socket.AF_INET6) or each.fileno() < 0:
            continue
        if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def draw_pages_in_turn() -> None:
    """Have a page wait for its turn; looks at a part of one need none."""
    run = ScriptRunner._run_script

    def in_turn(script: ScriptRunner, asked: RerunData) -> None:
        if not asked.fragment_id_queue:
            page_turns.take()
        try:
            run(script, asked)
        finally:
            page_turns.give_back()

    ScriptRunner._run_script = in_turn  # type: ignore[assignment]


def gather_what_scripts_say() -> None:
    """Have a script wake the server's event loop once in 5 ms, not at each element.

    Whenever it does, it hands over the interpreter lock and has to get it back, twice
    an element, of which a page has a hundred and more.
    """

    def call_soon(session: AppSession, callback: Callable[[], None]) -> None:
        waiting: deque = session.__dict__.setdefault("_waiting", deque())
        waiting.append(callback)
        if len(waiting) > 1:
            return  # whoever put the first one there has told the loop

        def call_all() -> None:
            while waiting:
                loop.call_soon(waiting.popleft())

        loop = session._event_loop
        with suppress(RuntimeError):  # the loop is closed: the server ends
            loop.call_soon_threadsafe(loop.call_later, GATHER_SECONDS, call_all)

    AppSession._call_soon_on_event_loop = call_soon  # type: ignore[assignment]

    def enqueued(runtime: Runtime) -> None:
        runtime._get_async_objs().need_send_data.set()  # this is the loop's own thread

    Runtime._enqueued_some_message = enqueued  # type: ignore[assignment]


def tell_the_theme_once() -> None:
    """Have the theme looked up once, not in its six parts at each look at a page."""
    populate = app_session._populate_theme_msg
    known: dict[str, CustomThemeConfig] = {}

    def from_known(message: CustomThemeConfig, section: str = "theme") -> None:
        if section not in known:
            populate(found := CustomThemeConfig(), section)
            known[section] = found
        message.MergeFrom(known[section])

    app_session._populate_theme_msg = from_known  # type: ignore[assignment]


def watch_no_files() -> None:
    """Have sessions that come back watch no files, as fileWatcherType says.

    Only new sessions ask that setting. One whose connection was lost for a moment looks
    for the files of all modules after its next run: 0.3 s in which nobody is served.
    """
    AppSession.register_file_watchers = lambda _: None  # type: ignore[assignment]


def let_scripts_end() -> None:
    """Have a fragment that is to run the moment its session's script ends wait for it.

    Else a new thread runs it at once, and what the old one had yet to send is dropped:
    the rest of the page, or a whole fragment that came due together with this one.
    """
    create = AppSession._create_scriptrunner

    def after_the_last(session: AppSession, wanted: RerunData) -> None:
        last = session._scriptrunner  # None once all that it said was heard
        if session._state is AppSessionState.SHUTDOWN_REQUESTED:
            return
        if last is None or not wanted.fragment_id:
            create(session, wanted)
        elif not last.request_rerun(wanted):
            later = session._event_loop.call_later
            later(GATHER_SECONDS, partial(session._create_scriptrunner, wanted))

    AppSession._create_scriptrunner = after_the_last  # type: ignore[assignment]


def let_go_of_threads() -> None:
    """Have what a script needed go with its thread, not with the next collection.

    It knows its thread and its state, and both know it: circles, with some 200 objects
    at each look, of which there are five a second for everybody whose run goes on.
    """
    run = ScriptRunner._run_script_thread

    def run_and_let_go(script: ScriptRunner) -> None:
        try:
            run(script)
        finally:
            script._script_thread = script._session_state = None  # type: ignore[assignment]

    ScriptRunner._run_script_thread = run_and_let_go  # type: ignore[assignment]


def present_values_as_they_are() -> None:
    """Have a component of ours tell its value without a class made for that.

    A select box, a number field and a question's options look at all values of a page,
    each by itself, and each look made a class that had to be collected: 15 a page. It
    would add what was triggered, and keep others from changing the value.
    """
    bidi_component.make_bidi_component_presenter = lambda *_: None  # type: ignore


def send_on_the_newest_connection() -> None:
    """Have a session that just came back get what is sent to it.

    Streamlit goes through a list of all connections, made before; what the session has
    to say since then went to the one that is lost, and the page waited for ever.
    """
    send_message = Runtime._send_message

    def to_newest(self: Runtime, known: ActiveSessionInfo, message: ForwardMsg) -> None:
        sessions = self._session_mgr
        newest = sessions.get_active_session_info(known.session.id)
        send_message(self, newest or known, message)

    Runtime._send_message = to_newest  # type: ignore[assignment]


def end_in_time() -> None:
    """Have the server end some seconds after Ctrl-C, whoever is still connected.

    A browser that connects again while the server is ending may be told nothing, and
    uvicorn would wait for it for ever.
    """
    for each in _living(uvicorn.Server):
        each.config.timeout_graceful_shutdown = GRACE_SECONDS


def _living(kind: type[Kind]) -> list[Kind]:
    """All objects of that class: Streamlit made them, and gives them to nobody."""
    return [each for each in gc.get_objects() if type(each) is kind]
