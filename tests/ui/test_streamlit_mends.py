"""core.ui.streamlit_mends: what Streamlit does once it is mended."""

import asyncio
import gc
import socket
import threading
import time
import weakref
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from streamlit.components.v2.bidi_component import main as bidi_component
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest

from core.ui import page_turns, streamlit_mends
from tests import event_loop

MENDED = (
    (AppSession, "register_file_watchers"),
    (AppSession, "_create_scriptrunner"),
    (AppSession, "_call_soon_on_event_loop"),
    (Runtime, "_enqueued_some_message"),
    (ScriptRunner, "_run_script"),
    (ScriptRunner, "_run_script_thread"),
    (app_session, "_populate_theme_msg"),
    (Runtime, "_send_message"),
    (bidi_component, "make_bidi_component_presenter"),
)


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch):
    """Streamlit is mended for one test alone."""
    for owner, name in MENDED:
        monkeypatch.setattr(owner, name, getattr(owner, name))


def test_answers_do_not_wait_for_each_other():
    """A connection to a socket like Streamlit's sends small packets at once."""
    with socket.socket() as listening:  # says no protocol
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        streamlit_mends.send_at_once()
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_session_that_comes_back_watches_no_files():
    """As one that is new: what looks for them is not even made."""
    session = SimpleNamespace(_local_sources_watcher=None)
    streamlit_mends.watch_no_files()
    AppSession.register_file_watchers(session)
    assert session._local_sources_watcher is None


def test_a_page_has_the_turn_for_as_long_as_it_is_drawn(monkeypatch):
    """Whatever becomes of it; a part of a page that looks again needs none."""
    had = []

    def run(*_) -> None:
        had.append(page_turns._mine.has_it)
        raise ValueError

    page_turns.give_back()
    monkeypatch.setattr(ScriptRunner, "_run_script", run)
    streamlit_mends.draw_pages_in_turn()
    for asked in (RerunData(), RerunData(fragment_id_queue=["a"]), RerunData()):
        with pytest.raises(ValueError, match=r"^$"):
            ScriptRunner._run_script(None, asked)
    assert had == [True, False, True]


def test_the_theme_is_looked_up_once_a_part(monkeypatch):
    """And told as a look would find it, every time."""
    looked = []

    def look(message: CustomThemeConfig, section: str = "theme") -> None:
        looked.append(section)
        message.primary_color = section

    monkeypatch.setattr(app_session, "_populate_theme_msg", look)
    streamlit_mends.tell_the_theme_once()
    for _ in range(3):
        told = CustomThemeConfig()
        app_session._populate_theme_msg(told)
        app_session._populate_theme_msg(told.light, "theme.light")
        assert told.primary_color == "theme"
        assert told.light.primary_color == "theme.light"
    assert looked == ["theme", "theme.light"]


def test_a_script_wakes_the_server_once_for_all_that_it_says():
    """In the order that it was said, and what one thing breaks stops no other."""
    heard: list[int] = []
    wakes = []

    async def listen() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: heard.append(-1))
        wake = loop.call_soon_threadsafe
        loop.call_soon_threadsafe = lambda *call: wakes.append(1) or wake(*call)
        session = SimpleNamespace(_event_loop=loop)

        def script() -> None:
            for n in range(50):
                say = heard.append if n != 20 else divmod
                AppSession._call_soon_on_event_loop(session, partial(say, n))

        thread = threading.Thread(target=script)
        thread.start()
        thread.join()  # meanwhile the server is busy elsewhere
        assert not heard
        while len(heard) < 50:
            await asyncio.sleep(0.001)
        script()
        while len(heard) < 100:
            await asyncio.sleep(0.001)

    streamlit_mends.gather_what_scripts_say()
    event_loop.run(listen())
    once = [*range(20), -1, *range(21, 50)]
    assert (heard, len(wakes)) == (once + once, 2)


FRAGMENT, PAGE = RerunData(fragment_id="a"), RerunData()


@pytest.mark.parametrize(
    ("wanted", "takes", "leaves", "order"),
    [
        (FRAGMENT, False, False, ["the end of the last", "a new script"]),
        (FRAGMENT, True, False, ["the old script", "the end of the last"]),
        (FRAGMENT, False, True, ["the end of the last"]),
        (PAGE, False, False, ["a new script", "the end of the last"]),
    ],
)
def test_a_fragment_waits_for_what_the_script_has_yet_to_send(
    monkeypatch, wanted, takes, leaves, order
):
    """The end of the old script first, then the fragment; a whole page at once.

    An old script that `takes` more runs it; whoever `leaves` meanwhile gets nothing.
    """
    happened: list[str] = []
    monkeypatch.setattr(
        AppSession, "_create_scriptrunner", lambda *_: happened.append("a new script")
    )
    streamlit_mends.let_scripts_end()

    def old_script(_: RerunData) -> bool:
        if takes:
            happened.append("the old script")
        return takes

    async def both() -> None:
        session = SimpleNamespace(_state=AppSessionState.APP_NOT_RUNNING)
        session._event_loop = asyncio.get_running_loop()
        session._scriptrunner = SimpleNamespace(request_rerun=old_script)
        ask = partial(AppSession._create_scriptrunner, session)
        session._create_scriptrunner = ask
        ask(wanted)
        await asyncio.sleep(0.05)
        happened.append("the end of the last")
        session._scriptrunner = None
        if leaves:
            session._state = AppSessionState.SHUTDOWN_REQUESTED
        await asyncio.sleep(0.05)

    event_loop.run(both())
    assert happened == order


def ended_script(**given: Any) -> "weakref.ref[ScriptRunner]":
    """The way to a script that has ended, which nobody else need know any more."""
    script = ScriptRunner(**dict.fromkeys(signature(ScriptRunner).parameters) | given)
    script.start()
    if thread := script._script_thread:
        thread.join()
    return weakref.ref(script)


def test_a_script_leaves_nothing_to_collect(monkeypatch):
    """Its objects are gone without it."""
    monkeypatch.setattr(ScriptRunner, "_run_script", lambda *_: None)
    names = dict.fromkeys(("main_script_hash", "current_page_script_hash"), "")
    about = {
        "initial_rerun_data": RerunData(),
        "pages_manager": SimpleNamespace(**names),
    }
    loop = asyncio.new_event_loop()
    gc.disable()
    try:
        assert ended_script(event_loop=loop, **about)() is not None, "it needs no mend"
        streamlit_mends.let_go_of_threads()
        left = ended_script(event_loop=loop, **about)
        deadline = time.monotonic() + 5
        while left() is not None:  # its thread may be about to end
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        gc.enable()
        loop.close()


def values() -> None:
    import streamlit as st

    from core.ui import code_editor

    code_editor.draw("The code", "code", "a = 1")
    st.text(type(st.session_state.code).__qualname__)
    st.text(code_editor.text("code"))


def test_a_value_is_told_as_it_is():
    """Not as one of a class that is made for that look."""
    told = [each.value for each in AppTest.from_function(values).run().text]
    assert "<locals>" in told[0], "it needs no mend"
    streamlit_mends.present_values_as_they_are()
    mended = [each.value for each in AppTest.from_function(values).run().text]
    assert "<locals>" not in mended[0]
    assert mended[1] == told[1] == "a = 1"


def test_a_session_that_came_back_is_told_on_its_new_connection():
    """Although the list that is gone through still has the old one."""

    class Connection:
        def __init__(self) -> None:
            self.heard: list[ForwardMsg] = []

        def write_forward_msg(self, message: ForwardMsg) -> None:
            self.heard.append(message)

    session, old, new = SimpleNamespace(id="s"), Connection(), Connection()
    known = SimpleNamespace(session=session, client=old)
    newest = SimpleNamespace(session=session, client=new)
    sessions = SimpleNamespace(get_active_session_info={"s": newest}.get)
    streamlit_mends.send_on_the_newest_connection()
    message = ForwardMsg()
    Runtime._send_message(SimpleNamespace(_session_mgr=sessions), known, message)
    assert (old.heard, new.heard) == ([], [message])


def test_a_server_does_not_wait_for_ever_for_who_is_connected():
    """A task that never ends is cancelled, and the server ends."""
    server = uvicorn.Server(uvicorn.Config("app:app"))
    streamlit_mends.end_in_time()
    server.config.timeout_graceful_shutdown /= 100
    server.lifespan = SimpleNamespace(shutdown=lambda: asyncio.sleep(0))

    async def ending() -> bool:
        server.servers = []
        hangs = asyncio.create_task(asyncio.sleep(3600))
        server.server_state.tasks.add(hangs)
        await asyncio.wait_for(server.shutdown(), 30)
        await asyncio.wait([hangs])
        return hangs.cancelled()

    assert event_loop.run(ending())
