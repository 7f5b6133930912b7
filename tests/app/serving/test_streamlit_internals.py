"""Each patch has a test that fails once Streamlit doesn't need the patch any more.

But only the load test, tools/load, tells whether pages need turns.
"""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import streamlit as st
from streamlit import config, net_util
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
)
from streamlit.web.server import server_util
from streamlit.web.server.starlette import starlette_websocket

from core.serving import operation_line, streamlit_internals
from core.serving.streamlit_internals import give_back_turn, take_turn
from core.serving.tab_weights import Tab
from core.ui import server
from tests.app import event_loop
from tests.app.jobs.follow import wait
from tests.app.serving.connections import SCRIPT, mends, new_runtime

HOUR = 3600.0
OLD, NEW = "the page before", "the newest page"


def test_a_session_that_reconnects_watches_no_files():
    assert st.get_option("server.fileWatcherType") == "none"

    async def watches() -> bool:
        manager = new_runtime()._session_mgr
        script = SimpleNamespace(main_script_path=SCRIPT, is_hello=False)
        name = manager.connect_session(Mock(), script, {})
        session = manager.get_active_session_info(name).session
        assert session._local_sources_watcher is None
        manager.disconnect_session(name)
        assert manager.connect_session(Mock(), script, {}, name) == name
        return session._local_sources_watcher is not None

    mends(streamlit_internals.watch_no_files, watches)


@pytest.mark.parametrize("origin", ["http://[", "http://[x]", "http://a]"])
def test_a_websocket_of_an_origin_that_is_no_address_is_refused(origin):
    async def fails() -> bool:
        try:
            return starlette_websocket._is_origin_allowed(origin, "a")
        except ValueError:
            return True

    mends(streamlit_internals.refuse_odd_origins, fails)
    assert starlette_websocket._is_origin_allowed("http://a", "a")
    assert not starlette_websocket._is_origin_allowed("http://b", "a")


class Script:
    """A run of a script; it takes requests only while it goes on."""

    def __init__(self, initial_rerun_data: Any = None, **_: Any) -> None:
        self.requests = [initial_rerun_data] if initial_rerun_data else []
        self.on_event = Mock()
        self.goes_on = True

    def start(self) -> None: ...

    def request_stop(self) -> None:
        self.goes_on = False

    def request_rerun(self, request: Any) -> bool:
        if self.goes_on:
            self.requests.append(request)
        return self.goes_on


def session(monkeypatch: pytest.MonkeyPatch) -> AppSession:
    """A session whose scripts don't run, and whose fragments are all there."""
    monkeypatch.setattr(app_session, "ScriptRunner", Script)
    monkeypatch.setattr(AppSession, "has_fragment", lambda *_: True)
    script = SimpleNamespace(main_script_path=SCRIPT, is_hello=False)
    return AppSession(script, Mock(), Mock(), lambda: None, {})


def test_the_first_click_of_a_new_session_comes_after_the_page(monkeypatch):
    click = WidgetState(id="a button", trigger_value=True)
    text = WidgetState(id="a field", string_value="kept")
    states = WidgetStates(widgets=[click, text])

    async def is_lost() -> bool:
        visit = session(monkeypatch)
        asked = ClientState(page_script_hash=NEW, widget_states=states)
        visit.request_rerun(asked)
        first = visit._scriptrunner
        (page,) = first.requests
        assert text in page.widget_states.widgets
        if click in page.widget_states.widgets:
            return True  # by the session that doesn't know the button
        for _ in range(2):
            visit._handle_scriptrunner_event_on_event_loop(
                visit._scriptrunner,
                ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS,
                run_descriptor=Mock(),
            )
        (request,) = visit._scriptrunner.requests
        assert click in request.widget_states.widgets
        return False

    monkeypatch.setattr(AppSession, "_create_script_finished_message", Mock())
    monkeypatch.setattr(AppSession, "_enqueue_forward_msg", Mock())
    mends(streamlit_internals.count_first_click, is_lost)


def test_requests_join_the_script_that_waits_for_its_turn(monkeypatch):
    """So they start no further threads, and a click that came first isn't lost."""
    click = WidgetStates(widgets=[WidgetState(id="a button", trigger_value=True)])

    async def starts_more_or_loses_the_click() -> bool:
        visit = session(monkeypatch)
        visit.request_rerun(ClientState(page_script_hash=NEW, widget_states=click))
        first = visit._scriptrunner
        vars(first)[streamlit_internals.IN_LINE] = True
        for _ in range(9):
            visit.request_rerun(ClientState(page_script_hash=NEW))
        return visit._scriptrunner is not first or not first.goes_on

    mends(streamlit_internals.join_waiting_scripts, starts_more_or_loses_the_click)


def test_a_request_stops_a_script_that_has_begun(monkeypatch):
    async def is_stopped() -> bool:
        visit = session(monkeypatch)
        visit.request_rerun(ClientState(page_script_hash=NEW))
        first = visit._scriptrunner
        visit.request_rerun(ClientState(page_script_hash=NEW))
        return visit._scriptrunner is not first and not first.goes_on

    streamlit_internals.join_waiting_scripts()
    assert event_loop.run(is_stopped())


def test_a_script_that_begins_anew_waits_for_a_new_turn(monkeypatch):
    monkeypatch.setattr(streamlit_internals._pages, "seconds", 60.0)
    order: list[str] = []

    def run(script: Any, _: Any) -> None:
        order.append("first")
        other = in_thread(lambda: (take_turn(), order.append("other")))
        wait(lambda: streamlit_internals._pages._waiting)
        stopped = ScriptRunnerEvent.SCRIPT_STOPPED_FOR_RERUN
        threading.Thread(target=lambda: (other.join(), other_ends())).start()
        ScriptRunner._on_script_finished(script, None, stopped)
        order.append("again")

    def other_ends() -> None:
        (turn,) = streamlit_internals._pages._working
        streamlit_internals._pages.give_back(turn)

    monkeypatch.setattr(ScriptRunner, "_run_script", run)
    monkeypatch.setattr(ScriptRunner, "_on_script_finished", Mock())
    streamlit_internals.draw_pages_in_turn()
    script = SimpleNamespace(_requests=ScriptRequests())
    ScriptRunner._run_script(script, RerunData())  # type: ignore[arg-type]
    assert order == ["first", "other", "again"]


def test_a_script_sends_everything_before_a_fragment_runs(monkeypatch):
    async def is_cut_off() -> bool:
        visit = session(monkeypatch)
        visit.request_rerun(ClientState(page_script_hash=NEW))
        last = visit._scriptrunner
        last.goes_on = False  # it has ended, and its last messages are on their way
        for fragment in "fgf":
            visit.request_rerun(ClientState(fragment_id=fragment, page_script_hash=NEW))
        cut_off = visit._scriptrunner is not last
        if not cut_off:
            visit._scriptrunner = None  # they have come
            async with asyncio.timeout(30):
                while visit._scriptrunner is None:
                    await asyncio.sleep(0.001)
        if not cut_off:
            (request,) = visit._scriptrunner.requests
            assert request.fragment_id_queue == ["f", "g"]
        return cut_off

    mends(streamlit_internals.finish_scripts, is_cut_off)


def test_a_left_page_runs_no_more_fragments(monkeypatch):
    async def runs() -> bool:
        visit = session(monkeypatch)
        visit.request_rerun(ClientState(page_script_hash=OLD))
        visit.request_rerun(ClientState(page_script_hash=NEW))
        fragment = ClientState(fragment_id="f", is_auto_rerun=True)
        fragment.page_script_hash = NEW
        visit.request_rerun(fragment)
        fragment.page_script_hash = OLD
        visit.request_rerun(fragment)
        asked = [each.page_script_hash for each in visit._scriptrunner.requests]
        assert asked[:2] == [NEW, NEW]
        return OLD in asked

    mends(streamlit_internals.forget_left_pages, runs)


def test_one_patch_can_be_left_out(monkeypatch):
    patches = [Mock(__name__=name) for name in "abc"]
    monkeypatch.setattr(streamlit_internals, "PATCHES", patches)
    monkeypatch.setenv("WITHOUT_PATCH", "b")
    streamlit_internals.apply()
    assert [patch.called for patch in patches] == [True, False, True]


def in_thread(draw) -> threading.Thread:
    thread = threading.Thread(target=draw)
    thread.start()
    return thread


def test_one_page_is_drawn_at_a_time(monkeypatch):
    monkeypatch.setattr(streamlit_internals._pages, "seconds", 60.0)
    drawing, most, drawn = 0, 0, 0

    def draw() -> None:
        nonlocal drawing, most, drawn
        take_turn()
        drawing += 1
        most = max(most, drawing)
        time.sleep(0.005)
        drawing, drawn = drawing - 1, drawn + 1
        give_back_turn()

    for thread in [in_thread(draw) for _ in range(10)]:
        thread.join()
    assert (most, drawn) == (1, 10)


def test_no_page_waits_long_for_one_that_hangs(monkeypatch):
    monkeypatch.setattr(streamlit_internals._pages, "seconds", 0.01)
    take_turn()
    thread = in_thread(lambda: (take_turn(), give_back_turn()))
    thread.join(60)
    assert not thread.is_alive()


def test_a_page_that_asks_a_worker_lets_the_next_one_be_drawn(monkeypatch):
    monkeypatch.setattr(streamlit_internals._pages, "seconds", 60.0)

    def ask(*_arguments, **_more) -> str:
        thread = in_thread(lambda: (take_turn(), give_back_turn()))
        thread.join(60)
        assert not thread.is_alive()
        return "an answer"

    monkeypatch.setattr("core.jobs.engine.Engine.ask", ask)
    take_turn()
    engine = object.__new__(server.PagesEngine)
    assert engine.ask("core.devices:describe") == "an answer"


def test_an_unknown_fragment_is_ignored_without_a_line_in_the_log(monkeypatch, caplog):
    caplog.set_level("INFO", logger=app_session.__name__)

    async def logs() -> bool:
        visit = session(monkeypatch)
        monkeypatch.setattr(visit, "has_fragment", lambda _: False)
        visit.request_rerun(ClientState(fragment_id="f"))
        assert not visit._scriptrunner
        lines, _ = len(caplog.records), caplog.clear()
        return bool(lines)

    mends(streamlit_internals.forget_left_pages, logs)


def test_a_value_for_what_is_no_widget_is_dropped():
    async def keeps() -> bool:
        message, visit = BackMsg(), Mock()
        for name in ("$$ID-a-None", "a", "$$STREAMLIT_INTERNAL_KEY_a__event"):
            message.rerun_script.widget_states.widgets.add(id=name, int_value=1)
        AppSession.handle_backmsg(visit, message)
        (state,) = visit._handle_rerun_script_request.call_args.args
        names = [widget.id for widget in state.widget_states.widgets]
        assert names[0] == "$$ID-a-None"
        assert names[-1].endswith("event")
        return "a" in names

    mends(streamlit_internals.drop_made_up_widgets, keeps)


@pytest.mark.parametrize(
    ("names", "answered"), [(1, True), (streamlit_internals.MOST_FILES + 1, False)]
)
def test_a_browser_announces_few_files(names, answered):
    def answers() -> int:
        session = Mock()
        session._uploaded_file_mgr.get_upload_urls.return_value = []
        request = FileURLsRequest(file_names=["a"] * names)
        AppSession._handle_file_urls_request(session, request)
        return session._enqueue_forward_msg.call_count

    assert answers() == 1
    streamlit_internals.refuse_costly_messages()
    assert answers() == answered


def test_no_browser_clears_the_caches_of_all_or_runs_git(monkeypatch):
    cleared, git = Mock(), Mock()
    monkeypatch.setattr(app_session, "caching", cleared)
    monkeypatch.setattr("streamlit.git_util.GitRepo", git)

    def send() -> tuple[int, int]:
        AppSession._handle_clear_cache_request(Mock())
        AppSession._handle_git_information_request(Mock())
        return cleared.cache_resource.clear.call_count, git.call_count

    assert send() == (1, 1)
    streamlit_internals.refuse_costly_messages()
    assert send() == (1, 1)


@pytest.mark.parametrize(
    ("payload", "at_once", "answered"),
    [
        ("deferred_file", 3, 3),
        ("deferred_file", 9, operation_line.MOST_OF_TAB),
        ("install_skills", 1, 0),  # writes files beside the app
        ("dismiss_skills_nudge", 1, 0),
    ],
)
def test_a_browser_has_few_operations_at_once(payload, at_once, answered):
    request = BackendOperationRequest(session_id="a")
    getattr(request, payload).SetInParent()
    sent = list[BackendOperationResponse]()

    async def answers(of_whom: str = "a", name: str = "") -> int:
        request.request_id = name
        session = Mock(id=of_whom)
        sent.clear()
        session._enqueue_forward_msg = lambda message: sent.append(
            message.backend_operation_response
        )

        async def make(*_: Any) -> BackendOperationResponse:
            await asyncio.sleep(0.01)
            return BackendOperationResponse()

        answer = AsyncMock(side_effect=make)
        session._backend_operation_dispatcher.dispatch = answer
        ask = AppSession._handle_backend_operation_request
        await asyncio.gather(*(ask(session, request) for _ in range(at_once)))
        return answer.call_count

    assert event_loop.run(answers()) == at_once
    streamlit_internals.refuse_costly_messages()
    assert event_loop.run(answers(name="b")) == answered
    refusals = [each.request_id for each in sent if each.error_msg]
    assert refusals == ["b"] * (at_once - answered if answered else 0)
    assert event_loop.run(answers(name="x" * 2_000)) == 0  # would stay while it waits
    assert event_loop.run(answers(of_whom="another")) == 0


def test_what_waits_for_a_download_is_forgotten_with_its_session():
    request = BackendOperationRequest(session_id="a")
    request.deferred_file.SetInParent()
    session = Mock(id="a", _state=AppSessionState.SHUTDOWN_REQUESTED)
    session._backend_operation_dispatcher.dispatch = answer = AsyncMock()
    streamlit_internals.refuse_costly_messages()
    event_loop.run(AppSession._handle_backend_operation_request(session, request))
    assert not answer.called


def test_an_address_gets_one_file_after_the_other():
    """Others' files don't wait for these."""
    request = BackendOperationRequest(session_id="a")
    request.deferred_file.SetInParent()

    async def at_once() -> tuple[int, int]:
        running, most = list[str](), list[list[str]]()

        def dispatch(address: str):
            async def answer(*_: Any) -> BackendOperationResponse:
                running.append(address)
                most.append([*running])
                await asyncio.sleep(0.01)
                running.remove(address)
                return BackendOperationResponse()

            return answer

        def asked(address: str):
            visit = Mock(id="a", _background_tasks=set())
            visit._backend_operation_dispatcher.dispatch = dispatch(address)
            vars(visit)[streamlit_internals.TAB] = tab = Tab()
            tab.address = address
            return AppSession._handle_backend_operation_request(visit, request)

        await asyncio.gather(*(asked(address) for address in "aaab"))
        return max(map(len, most)), max(each.count("a") for each in most)

    assert event_loop.run(at_once()) == (4, 3)
    streamlit_internals.refuse_costly_messages()
    assert event_loop.run(at_once()) == (2, 1)


@pytest.mark.parametrize(
    ("limit", "most"), [("MOST_MERGED_WIDGETS", 10), ("MOST_MERGED_BYTES", 400)]
)
def test_clicks_on_made_up_buttons_do_not_pile_up(limit, most, monkeypatch):
    monkeypatch.setattr(streamlit_internals, limit, most)

    def merged(at_once: int) -> int:
        requests = ScriptRequests()
        for number in range(20):
            ids = (f"{number} {i} {'x' * 20}" for i in range(at_once))
            clicks = [WidgetState(id=name, trigger_value=True) for name in ids]
            states = WidgetStates(widgets=clicks)
            requests.request_rerun(RerunData(widget_states=states, fragment_id="a"))
        states = requests.on_scriptrunner_ready().rerun_data.widget_states
        return len(states.widgets)

    assert merged(20) == 20 * 20
    streamlit_internals.refuse_costly_messages()
    assert merged(20) == 20
    assert merged(1) <= 12


def test_a_page_of_another_site_asks_no_server_for_this_machines_address(monkeypatch):
    asked = Mock(return_value=None)
    monkeypatch.setattr(net_util, "_make_blocking_http_get", asked)

    def questions() -> int:
        monkeypatch.setattr(net_util, "_external_ip", None)
        asked.reset_mock()
        assert not server_util.is_url_from_allowed_origins("http://evil.example")
        return asked.call_count

    assert questions()
    streamlit_internals.know_no_external_address()
    assert not questions()


def test_the_theme_is_looked_up_once(monkeypatch):
    look_up = Mock(wraps=config.get_options_for_section)
    monkeypatch.setattr(config, "get_options_for_section", look_up)

    def theme() -> CustomThemeConfig:
        message = CustomThemeConfig()
        app_session._populate_theme_msg(message)
        app_session._populate_theme_msg(message.light, "theme.light")
        app_session._populate_theme_msg(message.sidebar, "theme.sidebar")
        return message

    async def looks_up_again() -> bool:
        assert theme() == before
        look_up.reset_mock()
        assert theme() == before
        return look_up.called

    before = theme()
    assert before.HasField("light"), "the app has a light theme"
    assert not before.HasField("sidebar"), "and none of its own for the sidebar"
    mends(streamlit_internals.look_up_theme_once, looks_up_again)
