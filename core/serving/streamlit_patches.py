"""Patches of Streamlit 1.67 for a hundred people at once, where no setting would do.

requirements-web.txt pins the version: the patched code is private, and the next version
may not need the patches. To measure what a patch does, leave it out:
`python -m tools.load --without NAME`.
"""

import asyncio
import gc
import math
import os
import socket
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import h11
import uvicorn
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from streamlit.file_util import get_static_dir
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.runtime.session_manager import ActiveSessionInfo
from uvicorn.protocols.http.h11_impl import H11Protocol

Kind = TypeVar("Kind")
SOON_SECONDS = 0.005  # between two tries to start a script; see finish_scripts
LOOK_SECONDS = 20.0  # between two looks at whether a connection's request has arrived
# How many looks may find the same request's headers, or its body, incomplete
MOST_LOOKS: dict[Any, int] = {h11.IDLE: 1, h11.SEND_BODY: 15}
GRACE_SECONDS = 5  # for connections to close when the server ends
SIDEBAR = 220  # width in pixels
SCRIPT = Path(__file__).with_name("page.js")  # browsers run it before they draw a page
PARTS = (  # JavaScript files of Streamlit's frontend that many pages need
    *("ArrowVegaLiteChart", "BidiComponent", "Button", "ButtonGroup", "Checkbox"),
    *("DownloadButton", "ImageList", "Metric", "NumberInput", "PageLink", "Progress"),
    *("Radio", "Selectbox", "Slider", "StreamlitSyntaxHighlighter", "TextInput"),
)
TURN_SECONDS = 0.3  # the longest that a page waits for the pages before it

_turn = threading.BoundedSemaphore(1)
_thread = threading.local()


def apply() -> None:
    """Apply all patches except the one that the variable WITHOUT_PATCH names.

    `send_at_once` patches the listening socket, so the server has to listen already.
    """
    for patch in PATCHES:
        if patch.__name__ != os.environ.get("WITHOUT_PATCH"):
            patch()


def send_at_once() -> None:
    """Turn Nagle's algorithm off, so that small packets leave the server at once.

    asyncio turns it off for sockets marked as TCP, but Streamlit's listening socket
    isn't marked. Without this patch, each answer on a keep-alive connection waits 40 ms
    for the browser to confirm the previous packet. Connections inherit the listening
    socket's setting.
    """
    for open_socket in _instances(socket.socket):
        family = open_socket.family
        if family not in (socket.AF_INET, socket.AF_INET6) or open_socket.fileno() < 0:
            continue
        if open_socket.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            open_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def draw_pages_in_turn() -> None:
    """Draw whole pages one after the other, in the order they were asked for.

    If pages are drawn at the same time, each takes as long as all of them together,
    since Python switches between threads every 5 ms. Fragments need no turn.

    In three tests on 2 cores, 100 people came within 20 s. 95 of their 100 pages were
    there after 0.15, 0.17 and 0.42 s; without this patch, after 0.30, 0.30 and 0.56 s.
    """
    run = ScriptRunner._run_script

    def in_turn(script: ScriptRunner, request: RerunData) -> None:
        if not request.fragment_id_queue:
            take_turn()
        try:
            run(script, request)
        finally:
            give_back_turn()

    ScriptRunner._run_script = in_turn  # type: ignore[assignment]


def take_turn() -> None:
    """Wait until this thread may draw a page, or for TURN_SECONDS."""
    _thread.has_turn = _turn.acquire(timeout=TURN_SECONDS)


def give_back_turn() -> None:
    """Let another page be drawn; call this before the thread waits for something."""
    if getattr(_thread, "has_turn", False):
        _thread.has_turn = False
        _turn.release()


def watch_no_files() -> None:
    """Stop sessions that reconnect from watching source files.

    Streamlit obeys the setting fileWatcherType only in new sessions. A session that
    reconnects looks for the files of all modules: 0.3 s during which nobody is served.
    """
    AppSession.register_file_watchers = lambda _: None  # type: ignore[assignment]


def finish_scripts() -> None:
    """Start a fragment's script once the previous script has sent everything.

    Otherwise, a new thread runs the script at once, and the old thread's messages are
    dropped: the rest of the page, or a whole fragment that was due at the same time.
    """
    create = AppSession._create_scriptrunner

    def after_the_last(session: AppSession, request: RerunData) -> None:
        last = session._scriptrunner  # None once its messages have all been handled
        if session._state is AppSessionState.SHUTDOWN_REQUESTED:
            return
        if last is None or not request.fragment_id:
            create(session, request)
        elif not last.request_rerun(request):
            again = partial(session._create_scriptrunner, request)
            session._event_loop.call_later(SOON_SECONDS, again)

    AppSession._create_scriptrunner = after_the_last  # type: ignore[assignment]


def send_what_waits() -> None:
    """Send a fragment's messages even if its next run starts before they are sent.

    Streamlit drops these messages when the fragment's next run starts. But it keeps
    references to elements that the browser has cached, which name no fragment. The
    browser then puts such an element into a container that was never sent, fails, and
    shows a white page.
    """
    clear = ForwardMsgQueue.clear

    def clear_for_page(
        queue: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        if fragment_ids_this_run:
            queue._delta_index_map = {}  # so that new messages replace no waiting ones
        else:
            clear(queue, retain_lifecycle_msgs)

    ForwardMsgQueue.clear = clear_for_page  # type: ignore[assignment]


def forget_left_pages() -> None:
    """Ignore requests for fragments of a page that the browser has left.

    Until the next page begins, the browser keeps asking for the old page's fragments.
    Streamlit runs them after the next page, under the old page's name. The browser
    takes this for a change of pages, and shows nothing until somebody reloads the page.
    """
    request_rerun = AppSession.request_rerun
    create = AppSession._create_scriptrunner
    announce = AppSession._create_new_session_message

    def is_left(session: AppSession, page: str) -> bool:
        newest = session.__dict__.get("_newest_page")
        return bool(newest and page) and page != newest

    def request_of_newest(session: AppSession, state: ClientState | None) -> None:
        if state and state.fragment_id:
            if is_left(session, state.page_script_hash):
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


def send_on_newest_connection() -> None:
    """Send to the connection that a session has now.

    Streamlit goes through an older list of connections. Without this patch, messages to
    a session that has just reconnected are lost, and the session's page waits forever.
    """
    send_message = Runtime._send_message

    def to_newest(self: Runtime, old: ActiveSessionInfo, message: ForwardMsg) -> None:
        newest = self._session_mgr.get_active_session_info(old.session.id)
        send_message(self, newest or old, message)

    Runtime._send_message = to_newest  # type: ignore[assignment]


def end_in_time() -> None:
    """End the server some seconds after Ctrl-C, even with open connections.

    If a browser reconnects while the server is ending, the browser may get no message,
    and uvicorn would wait for this connection forever.
    """
    for server in _instances(uvicorn.Server):
        server.config.timeout_graceful_shutdown = GRACE_SECONDS


def hang_up_on_half_requests() -> None:
    """End connections whose next request doesn't arrive in time.

    uvicorn has a time limit only until the next request's first byte. Without this
    patch, half-sent requests hold their connections, which are limited, forever.
    """
    begin = H11Protocol.connection_made

    def connection_made(protocol: H11Protocol, transport: asyncio.Transport) -> None:
        begin(protocol, transport)
        protocol.loop.call_later(LOOK_SECONDS, look, protocol, (None, h11.IDLE), 0)

    def look(protocol: H11Protocol, before: object, looks: int) -> None:
        is_over = protocol not in protocol.connections  # or it is a websocket now
        if is_over or protocol.transport.is_closing():
            return
        now = protocol.cycle, protocol.conn.their_state
        looks = looks + 1 if now == before else 0
        if looks >= MOST_LOOKS.get(now[1], math.inf):
            return protocol.transport.close()
        protocol.loop.call_later(LOOK_SECONDS, look, protocol, now, looks)

    H11Protocol.connection_made = connection_made  # type: ignore[assignment]


PATCHES = (
    send_at_once,
    draw_pages_in_turn,
    watch_no_files,
    finish_scripts,
    send_what_waits,
    forget_left_pages,
    send_on_newest_connection,
    end_in_time,
    hang_up_on_half_requests,
)


def page_routes(titles: Iterable[str]) -> list[Route]:
    """Routes for the HTML that is the same at each page's address.

    Without these routes, Streamlit looks for files with the pages' names, ten times for
    each opened page. With many people, the search takes longer than the responses.
    """
    html = steady(Path(get_static_dir()))

    async def frame(_: Request) -> Response:
        # Browsers have to ask each time: a new Streamlit names scripts differently.
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})

    async def nothing(_: Request) -> Response:
        """404 for browsers that seek Streamlit's endpoints below a page's address."""
        return Response("Not Found", 404)

    async def script(_: Request) -> Response:
        # A file of its own, since the proxy's rules forbid inline scripts.
        return FileResponse(SCRIPT, headers={"Cache-Control": "no-cache"})

    routes = [Route("/", frame), Route(f"/{SCRIPT.name}", script)]
    for title in titles:
        routes.append(Route(f"/{title}", frame))
        routes.append(Route(f"/{title}/_stcore/{{_:path}}", nothing))
    return routes


def steady(folder: Path) -> str:
    """Streamlit's index.html, changed so that pages don't move as they load.

    Streamlit loads an element's code when the first element of its kind comes. Until
    the code is there, the element is 20 pixels high. Here, the code is loaded with the
    page, and the sidebar has its place at once. `folder` is Streamlit's static folder.
    """
    html = (folder / "index.html").read_text("utf-8")
    scripts = [*(folder / "static/js").glob("*.js")]
    loads = (
        f'<link rel="modulepreload" crossorigin href="./static/js/{script.name}">'
        for script in scripts
        if script.name.partition(".")[0] in PARTS
    )
    css = SCRIPT.with_suffix(".css").read_text("utf-8")
    css = css.replace("{sidebar}", f"{SIDEBAR}px")
    script = f'<script src="./{SCRIPT.name}"></script>'
    head = f"{''.join(loads)}<style>{css}</style>{script}"
    return html.replace("</head>", f"{head}</head>")


def _instances(kind: type[Kind]) -> list[Kind]:
    """All objects of this class in memory, even those that Streamlit keeps private."""
    return [instance for instance in gc.get_objects() if type(instance) is kind]
