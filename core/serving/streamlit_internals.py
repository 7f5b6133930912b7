"""All that the app uses of Streamlit's private parts, and its patches of them.

requirements-web.txt pins Streamlit 1.67, since the next version may change these parts.
Each patch mends a fault, which its docstring names with the upstream thread. A test
shows the fault without the patch, so it fails once the patch is no longer needed.
`python -m tools.load --without NAME` measures what a patch does.
"""

import asyncio
import gc
import os
import threading
import weakref
from collections import deque
from contextlib import suppress
from functools import cache, partial
from typing import Any, Literal

import streamlit as st
from google.protobuf.message import DecodeError
from streamlit import net_util, runtime
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLsRequest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import CustomThemeConfig
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner import (
    ScriptRunner,
    ScriptRunnerEvent,
    get_script_run_ctx,
)
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.session_manager import (
    SessionClientDisconnectedError,
)
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_websocket import StarletteSessionClient

from core.serving import (
    message_size,
    starlette_internals,
    streamlit_delivery,
    tab_weights,
    uvicorn_internals,
)
from core.serving.fair_turns import FairTurns
from core.serving.operation_line import OperationLine
from core.serving.request_source import network
from core.serving.tab_weights import Tab, Tabs
from core.serving.visitor_cookie import COOKIE, read, read_dated

WAITING = "_waiting_for_the_last_script"  # a session's attribute; see finish_scripts
BEGUN = "_has_had_a_request"  # a session's attribute; see count_first_click
KEPT = "_script_in_line"  # a session's attribute; see join_waiting_scripts
IN_LINE = "_waits_for_its_turn"  # a script's attribute; see join_waiting_scripts
CLICKED = "_first_click"  # a session's attribute; see count_first_click
TAB = "_tab"  # a session's attribute; see weigh_tabs
CLICKS = ("trigger_value", "string_trigger_value", "json_trigger_value")
SOON_SECONDS = 0.005  # between two tries to start a script; see finish_scripts
WIDGET = "$$"  # how the ids of widgets begin, and of components' events
MOST_FILES = 100  # that a browser may announce at once; pages take one at a time
OPERATIONS = ("deferred_file", "dataframe_chunk")  # downloads, and a table's rows
MOST_OPERATION_BYTES = 1_000  # of a browser's request for one
TOO_MANY = "Too many downloads are waiting in your network. Try again in a moment."
# What may wait to be merged with a further message: a page has some 100 widgets.
# Each further message merges everything anew, while nobody else is served.
MOST_MERGED_WIDGETS, MOST_MERGED_BYTES = 300, 1_000_000
# Of sessions that have had to end, before what these held is collected, and when: the
# sessions' threads end first
MOST_ENDED_BYTES, COLLECT_SECONDS = 50_000_000, 1.0
TURN_SECONDS = 0.3  # after which a page goes on beside one that takes longer

_pages, _parts = FairTurns(TURN_SECONDS), FairTurns(TURN_SECONDS)
_thread = threading.local()


def is_drawing() -> bool:
    """Whether this thread draws a page, so that it has a visitor."""
    return get_script_run_ctx(suppress_warning=True) is not None


def fragment_id() -> str:
    """The id of the fragment that is being drawn; "" outside of fragments."""
    return ThreadState.get().fragment_id or ""


def set_interval(fragment: str, seconds: float | None) -> None:
    """Tell the browser how often to ask for a fragment; None: no longer.

    The interval of `st.fragment(run_every=…)` changes only when the whole page is
    redrawn.
    """
    message = ForwardMsg()
    if seconds is None:
        message.stop_auto_rerun.fragment_ids.append(fragment)
    else:
        message.auto_rerun.fragment_id = fragment
        message.auto_rerun.interval = seconds
    if context := get_script_run_ctx():
        context.enqueue(message)


def uploads() -> MemoryUploadedFileManager:
    """The files that all sessions have uploaded."""
    files = runtime.get_instance().uploaded_file_mgr
    assert isinstance(files, MemoryUploadedFileManager)
    return files


def is_session(name: str) -> bool:
    """Whether a session goes on, or waits for its browser to come back."""
    manager: Any = runtime.get_instance()._session_mgr
    return manager.get_session_info(name) is not None


def internal_address() -> str | None:
    """This machine's address in its own network, if it is in one."""
    return net_util.get_internal_ip()


def asks_for_run(data: bytes) -> bool:
    """Whether a browser's message asks for a page or for part of a page."""
    with suppress(DecodeError):  # Streamlit hangs up on a broken message
        return BackMsg.FromString(data).WhichOneof("type") == "rerun_script"
    return False


def run_event(data: bytes) -> Literal["begin", "page", "part"] | None:
    """What a message tells the browser: a run begins, or a page or a part is drawn."""
    message = ForwardMsg.FromString(data)
    match message.WhichOneof("type"):
        case "new_session":
            return "begin"
        case "script_finished":
            match message.script_finished:
                case ForwardMsg.FINISHED_SUCCESSFULLY:
                    return "page"
                case ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY:
                    return "part"
    return None


def apply() -> None:
    """Apply all patches except the one that the variable WITHOUT_PATCH names."""
    for patch in PATCHES:
        if patch.__name__ != os.environ.get("WITHOUT_PATCH"):
            patch()


def watch_no_files() -> None:
    """Stop sessions that reconnect from watching source files.

    Streamlit obeys the setting fileWatcherType only in new sessions
    (streamlit/streamlit#8738). A session that reconnects looks for the files of all
    modules: 0.3 s during which nobody is served.
    """
    AppSession.register_file_watchers = lambda _: None  # type: ignore[assignment]


def finish_scripts() -> None:
    """Start a fragment's script once the previous script has sent everything.

    Otherwise, a new thread runs the script at once, and the old thread's messages are
    dropped: the rest of the page, or a whole fragment that was due at the same time
    (streamlit/streamlit#9921, which was mended only for fragments that are gone).
    Requests that wait for it are merged into one, as Streamlit merges them for a script
    that still runs. Otherwise, a browser could let any number of them wait.
    """
    create = AppSession._create_scriptrunner

    def after_the_last(session: AppSession, request: RerunData) -> None:
        last = session._scriptrunner  # None once its messages have all been handled
        if session._state is AppSessionState.SHUTDOWN_REQUESTED:
            return
        if last is None or not (request.fragment_id or request.fragment_id_queue):
            create(session, request)
        elif not last.request_rerun(request):
            if WAITING not in vars(session):
                vars(session)[WAITING] = ScriptRequests()
                session._event_loop.call_later(SOON_SECONDS, try_again, session)
            vars(session)[WAITING].request_rerun(request)

    def try_again(session: AppSession) -> None:
        merged = vars(session).pop(WAITING).on_scriptrunner_ready()
        session._create_scriptrunner(merged.rerun_data)

    AppSession._create_scriptrunner = after_the_last  # type: ignore[assignment]


def forget_left_pages() -> None:
    """Ignore requests for fragments of a page that the browser has left.

    A browser that changes the page may have asked for the old page's fragments just
    before (streamlit/streamlit#9617 stops only the requests after the change).
    Streamlit runs them after the next page, under the old page's name. The browser
    takes this for a change of pages, and shows nothing until somebody reloads the page.

    Nor does it run fragments that it doesn't know, but it logs a line for each request.
    """
    request_rerun = AppSession.request_rerun
    create = AppSession._create_scriptrunner
    announce = AppSession._create_new_session_message

    def is_left(session: AppSession, page: str) -> bool:
        newest = session.__dict__.get("_newest_page")
        return bool(newest and page) and page != newest

    def request_of_newest(session: AppSession, state: ClientState | None) -> None:
        if state and state.fragment_id:
            is_known = session.has_fragment(state.fragment_id)
            if not is_known or is_left(session, state.page_script_hash):
                return
        elif state:
            session.__dict__["_newest_page"] = state.page_script_hash
        request_rerun(session, state)

    def create_for_newest(session: AppSession, request: RerunData) -> None:
        if not (request.fragment_id and is_left(session, request.page_script_hash)):
            create(session, request)

    def announce_newest(session: AppSession, page: str, *more: Any) -> ForwardMsg:
        # The page may change if a script switches to another. A session's first message
        # doesn't count: it names Home, since Streamlit hasn't looked up the address.
        if session.__dict__.get("_newest_page"):
            session.__dict__["_newest_page"] = page
        return announce(session, page, *more)

    AppSession.request_rerun = request_of_newest  # type: ignore[assignment]
    AppSession._create_scriptrunner = create_for_newest  # type: ignore[assignment]
    AppSession._create_new_session_message = announce_newest  # type: ignore[assignment]


def count_first_click() -> None:
    """Draw the page before the click in a session that begins with a click.

    After a restart of the server, a browser goes on in a new session
    (streamlit/streamlit#8901). If its page has fragments, it asks for the page
    (streamlit/streamlit#11890). Otherwise, it asks for nothing until somebody clicks,
    and the session, which knows no button yet, doesn't call what the click should.
    """
    request_rerun = AppSession.request_rerun
    handle = AppSession._handle_scriptrunner_event_on_event_loop

    def with_page(session: AppSession, state: ClientState | None) -> None:
        is_first = state is not None and BEGUN not in vars(session)
        if state is not None and is_first:
            vars(session)[BEGUN] = True
            widgets = state.widget_states.widgets
            others = [w for w in widgets if w.WhichOneof("value") not in CLICKS]
            if len(others) < len(widgets):
                vars(session)[CLICKED], page = state, ClientState()
                page.CopyFrom(state)
                page.ClearField("fragment_id")
                page.widget_states.CopyFrom(WidgetStates(widgets=others))
                state = page
        request_rerun(session, state)

    def then_click(
        session: AppSession, sender: Any, event: Any, *more: Any, **named: Any
    ) -> None:
        is_current = sender is session._scriptrunner
        handle(session, sender, event, *more, **named)
        is_end = event is ScriptRunnerEvent.SCRIPT_STOPPED_WITH_SUCCESS
        if is_end and is_current and CLICKED in vars(session):
            session.request_rerun(vars(session).pop(CLICKED))

    AppSession.request_rerun = with_page  # type: ignore[assignment]
    AppSession._handle_scriptrunner_event_on_event_loop = then_click  # type: ignore[assignment]


def draw_pages_in_turn() -> None:
    """Draw whole pages one after the other, and parts of pages, too: see FairTurns.

    If pages are drawn at the same time, each takes as long as all of them together,
    since Python switches between threads every 5 ms. A part doesn't wait for a page.

    In three tests on 2 cores, 100 people came within 20 s. 95 of their 100 pages were
    there after 0.15, 0.17 and 0.42 s; without this patch, after 0.30, 0.30 and 0.56 s.
    A page has 0.3 s.

    A script that a browser's next request has stopped begins anew in the same call of
    `_run_script`, so it takes a new turn.
    """
    run, finish = ScriptRunner._run_script, ScriptRunner._on_script_finished

    def in_turn(script: ScriptRunner, request: RerunData) -> None:
        take_turn_for(script, _parts if request.fragment_id_queue else _pages)
        try:
            run(script, request)
        finally:
            give_back_turn()

    def then_again_in_turn(
        script: ScriptRunner, context: Any, event: Any, *more: Any, **named: Any
    ) -> None:
        finish(script, context, event, *more, **named)
        if event is ScriptRunnerEvent.SCRIPT_STOPPED_FOR_RERUN:
            give_back_turn()
            take_turn_for(script, _pages)

    ScriptRunner._run_script = in_turn  # type: ignore[assignment]
    ScriptRunner._on_script_finished = then_again_in_turn  # type: ignore[assignment]


def take_turn_for(script: ScriptRunner, turns: FairTurns) -> None:
    """Wait until a session's thread may draw, or until the session has ended."""
    state, cookie = script._requests, st.context.cookies.get(COOKIE, "")
    address = network(st.context.ip_address or "")

    def is_wanted() -> bool:
        return state._state is not ScriptRequestType.STOP

    vars(script)[IN_LINE] = True
    take_turn(turns, address, read(cookie), is_wanted)
    vars(script)[IN_LINE] = False


def take_turn(turns: FairTurns = _pages, *whose: Any) -> None:
    """Wait until this thread may draw: see FairTurns.take."""
    _thread.turn = turns, turns.take(*whose)


def give_back_turn() -> None:
    """Let another page be drawn; call this before the thread waits for something."""
    if taken := vars(_thread).pop("turn", None):
        turns, turn = taken
        turns.give_back(turn)


def join_waiting_scripts() -> None:
    """Give a request for a page to the session's script if that waits for its turn.

    Streamlit would stop that script, which loses the click that it was started for,
    and start another thread. So a browser that asks without end would make a thread for
    each message, and the event loop waits for each thread's start. The script that
    waits does first what it was started for: it calls what was clicked. Then it begins
    anew, with the requests that came meanwhile.
    """
    request_rerun = AppSession.request_rerun
    create = AppSession._create_scriptrunner

    def keep_waiting(session: AppSession, state: ClientState | None) -> None:
        script = session._scriptrunner
        if script is None or not vars(script).get(IN_LINE):
            return request_rerun(session, state)
        vars(session)[KEPT] = script
        vars(script)["request_stop"] = lambda: None
        try:
            request_rerun(session, state)
        finally:
            del vars(session)[KEPT], vars(script)["request_stop"]

    def create_or_join(session: AppSession, request: RerunData) -> None:
        script = vars(session).get(KEPT)
        if script is None or not script.request_rerun(request):
            return create(session, request)
        session._scriptrunner = script

    AppSession.request_rerun = keep_waiting  # type: ignore[assignment]
    AppSession._create_scriptrunner = create_or_join  # type: ignore[assignment]


def refuse_costly_messages() -> None:
    """Ignore messages of a browser that would cost everybody else their time.

    Before it looks at the size, Streamlit makes an address for each file name that a
    browser announces: half a million names in 1 MB keep the server busy for half a
    minute. It makes a file again for each message that asks for the download, however
    many wait: now it makes one at a time for a network address, where visitors take
    turns, and those for whom there is no place get an error. And any browser may use
    what Streamlit hides in menus: clear the caches of all visitors, run git while
    nobody else is served, which tells the names of changed files, too, and install
    files beside the app. While a script runs, Streamlit merges all clicks that come, on
    whatever buttons a browser has made up, again and again.
    """
    handle = AppSession._handle_file_urls_request
    operate = AppSession._handle_backend_operation_request
    merge = script_requests._coalesce_widget_states
    lines = weakref.WeakValueDictionary[str, OperationLine]()

    def of_few_files(session: AppSession, request: FileURLsRequest) -> None:
        if len(request.file_names) <= MOST_FILES:
            handle(session, request)

    async def of_few_operations(
        session: AppSession, request: BackendOperationRequest
    ) -> None:
        is_known = request.WhichOneof("payload") in OPERATIONS
        is_own = request.session_id == session.id
        if not (is_known and is_own and request.ByteSize() < MOST_OPERATION_BYTES):
            return
        tab = vars(session).get(TAB) or Tab()
        line = lines.setdefault(tab.address, OperationLine())
        async with line.turn(tab.visitor, session.id, tab.age) as is_due:
            if session._state is AppSessionState.SHUTDOWN_REQUESTED:
                return
            if is_due:
                return await operate(session, request)
        answer = ForwardMsg()
        answer.backend_operation_response.request_id = request.request_id
        answer.backend_operation_response.error_msg = TOO_MANY
        session._enqueue_forward_msg(answer)

    def merge_few(
        old: WidgetStates | None, new: WidgetStates | None
    ) -> WidgetStates | None:
        is_much = old is not None and (
            len(old.widgets) > MOST_MERGED_WIDGETS or old.ByteSize() > MOST_MERGED_BYTES
        )
        return merge(None if is_much else old, new)

    script_requests._coalesce_widget_states = merge_few  # type: ignore[assignment]
    AppSession._handle_file_urls_request = of_few_files  # type: ignore[assignment]
    AppSession._handle_backend_operation_request = of_few_operations  # type: ignore[assignment]
    AppSession._handle_clear_cache_request = lambda _: None  # type: ignore[assignment]
    AppSession._handle_git_information_request = lambda _: None  # type: ignore[assignment]


def drop_made_up_widgets() -> None:
    """Drop values of a browser for what can't be a widget.

    Streamlit keeps them, and then each page that looks through its session's state ends
    in an error: there is no such value. An error has 45 lines in the log.
    """
    handle = AppSession.handle_backmsg

    def of_widgets(session: AppSession, message: BackMsg) -> None:
        widgets = message.rerun_script.widget_states.widgets
        if not all(widget.id.startswith(WIDGET) for widget in widgets):
            known = [widget for widget in widgets if widget.id.startswith(WIDGET)]
            message.rerun_script.widget_states.CopyFrom(WidgetStates(widgets=known))
        handle(session, message)

    AppSession.handle_backmsg = of_widgets  # type: ignore[assignment]


def know_no_external_address() -> None:
    """Don't ask a server on the internet for this machine's address there.

    Streamlit asks it on its event loop when a page of another site opens a websocket,
    to compare the site with this address, and again for each such websocket if there
    was no answer. Where a network drops the question silently, nobody is served for
    20 s each time: the limit of one second doesn't cover looking up the name.
    """
    net_util.get_external_ip = lambda: None


def look_up_theme_once() -> None:
    """Look the theme up once, instead of at each run of a page or of a part of it.

    Streamlit goes through some 300 settings for the message that begins each run. Of
    the 4 ms that the server takes for a tab's look at its place in the queue, this is a
    tenth.
    """
    populate = app_session._populate_theme_msg

    @cache
    def looked_up(section: str) -> CustomThemeConfig:
        theme = CustomThemeConfig()
        populate(theme, section)
        return theme

    def from_cache(message: CustomThemeConfig, section: str = "theme") -> None:
        # A part that is empty has to stay absent.
        if (theme := looked_up(section)).ByteSize():
            message.MergeFrom(theme)

    app_session._populate_theme_msg = from_cache  # type: ignore[assignment]


def weigh_tabs() -> None:
    """End the heaviest tabs when all become too much: see Tabs.

    Streamlit keeps what a browser's widgets hold until two minutes after it has left.
    Messages of many tiny objects, which take 35 times their bytes, are ignored.

    It also keeps up to 500 messages for a browser that doesn't read them, each of up to
    10 MB. If there are more, it lets the session go, but leaves the browser connected.

    Sessions that have ended are garbage, which core/serving/garbage.py collects once a
    minute: too late for a browser that opens and closes heavy tabs all the time.
    """
    connect, handle = Runtime.connect_session, AppSession.handle_backmsg
    write = StarletteSessionClient.write_forward_msg
    tabs, ended = Tabs(), 0
    uvicorn_internals.weigh_connections(tabs)

    def connect_session(
        self: Runtime, client: StarletteSessionClient, *more: Any, **named: Any
    ) -> str:
        name = connect(self, client, *more, **named)
        info = self._session_mgr.get_active_session_info(name)
        if info and (tab := of_client(client)):
            context = client.client_context
            tab.address = network(context.remote_ip or "")
            tab.visitor, tab.age = read_dated(context.cookies.get(COOKIE, ""))
            tab.unread.append(lambda: sum(map(len, unread(client))))
            tab.session = weakref.ref(info.session)
            tab.close = partial(close, self, name, tab)
            if before := vars(info.session).get(TAB):
                tabs.go_on(before, tab)
            vars(info.session)[TAB] = tab
        return name

    def handle_backmsg(session: AppSession, message: BackMsg) -> None:
        if message_size.is_simple(message):
            if tab := vars(session).get(TAB):
                tab.hold(message_size.memory(message))
            handle(session, message)

    def write_forward_msg(client: StarletteSessionClient, message: ForwardMsg) -> None:
        tab = of_client(client) or Tab()
        try:
            write(client, message)
        except SessionClientDisconnectedError:
            tab.abort()
            raise
        tabs.grow(len(unread(client)[-1]))

    def close(runtime: Runtime, session: str, tab: Tab) -> None:
        nonlocal ended
        loop = asyncio.get_running_loop()
        loop.call_soon(runtime.close_session, session)
        ended += tab.largest
        if ended > MOST_ENDED_BYTES:
            ended = 0
            loop.call_later(COLLECT_SECONDS, gc.collect)

    def of_client(client: StarletteSessionClient) -> Tab | None:
        return client._websocket.scope.get("state", {}).get(tab_weights.TAB)

    def unread(client: StarletteSessionClient) -> deque[bytes]:
        return client._send_queue._queue  # type: ignore[attr-defined]

    Runtime.connect_session = connect_session  # type: ignore[assignment, method-assign]
    AppSession.handle_backmsg = handle_backmsg  # type: ignore[assignment]
    StarletteSessionClient.write_forward_msg = write_forward_msg  # type: ignore[assignment]


def refuse_odd_origins() -> None:
    """Refuse websockets of an Origin that is no address, such as http://[.

    Streamlit ends them by an exception, which writes 5 kB to the log.
    """
    is_allowed = starlette_websocket._is_origin_allowed

    def is_address_and_allowed(origin: str | None, host: str | None) -> bool:
        with suppress(ValueError):
            return is_allowed(origin, host)
        return False

    starlette_websocket._is_origin_allowed = is_address_and_allowed


PATCHES = (
    watch_no_files,
    finish_scripts,
    forget_left_pages,
    count_first_click,
    draw_pages_in_turn,
    join_waiting_scripts,
    refuse_costly_messages,
    drop_made_up_widgets,
    know_no_external_address,
    look_up_theme_once,
    refuse_odd_origins,
    *starlette_internals.PATCHES,
    *uvicorn_internals.PATCHES,
    weigh_tabs,
    *streamlit_delivery.PATCHES,
)
