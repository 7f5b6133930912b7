"""One tab of a browser, without the browser: it speaks Streamlit's websocket protocol.

It loads a page, presses buttons, lets fragments look again when the page asks it to,
and knows what the page says. Left out: the static files, which a browser keeps; the
values of widgets, which the server remembers; and the cache of messages.
"""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from http.cookies import SimpleCookie
from typing import TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.cookies import get_cookie_header
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState, ContextInfo
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from urllib3.util import Retry
from websockets import ConnectionClosed, WebSocketException
from websockets.asyncio.client import ClientConnection, connect

from tools.load.record import Record

XSRF = "_streamlit_xsrf"
CONTEXT = {"timezone": "Etc/UTC", "timezone_offset": 0, "locale": "en-US"}
Found = TypeVar("Found")


class Trouble(Exception):  # noqa: N818 - it is what a person meets, not a bug of ours
    """What a person would call an error, in a sentence."""


class Browser:
    """What the tabs of one person share: the server's address and the cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy stands before a server of our own
        # The server may close an idle connection just as it is used: once more then.
        self._session.mount("http://", HTTPAdapter(max_retries=Retry(1)))

    async def get(self, path: str) -> bool:
        """Load a file and keep its cookies; answers whether the server has it."""
        address = f"{self.url}/{path}"
        try:
            answer = await asyncio.to_thread(self._session.get, address, timeout=60)
        except requests.RequestException as error:
            raise Trouble(f"GET /{path}: {error!r}") from None
        if answer.status_code not in (200, 404):
            raise Trouble(f"GET /{path}: status {answer.status_code}")
        return answer.ok

    async def connect(self, *session: str) -> ClientConnection:
        """A websocket for one tab, with the cookies that the pages have set.

        With the id of a session it goes on with that.
        """
        jar = self._session.cookies
        token = jar.get(XSRF) or "PLACEHOLDER_AUTH_TOKEN"
        cookies = get_cookie_header(jar, requests.Request("GET", self.url))
        try:
            socket = await connect(
                f"{self.url.replace('http', 'ws', 1)}/_stcore/stream",
                origin=self.url,
                subprotocols=["streamlit", token, *session],
                additional_headers={"Cookie": cookies} if cookies else {},
                max_size=None,
                open_timeout=60,
                ping_interval=None,  # browsers don't, they only answer
                proxy=None,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise Trouble(f"The websocket: {error!r}") from None
        assert socket.response
        for line in socket.response.headers.get_all("Set-Cookie"):
            for name, cookie in SimpleCookie(line).items():
                jar.set(name, cookie.value)
        return socket


def text_of(element: Element) -> str:
    """What an element says; empty for a picture and the like."""
    match element.WhichOneof("type"):
        case "alert":
            return f"{element.alert.title} {element.alert.body}".strip()
        case "code":
            return element.code.code_text
        case "exception":
            return element.exception.message
        case "heading" | "markdown" as kind:
            return getattr(element, kind).body
        case "progress":
            return element.progress.text
    return ""


class Tab:
    """A page in a browser; Trouble where a person would see an error on it."""

    def __init__(self, browser: Browser, record: Record) -> None:
        self._browser, self._record = browser, record
        self.query = ""  # what stands behind the "?" in the address
        self._page = ""  # its name in the address
        self._hash = ""  # its name between browser and server
        self._session = ""  # the tab's own name there
        self._elements: dict[tuple[int, ...], tuple[str, Element]] = {}
        self._timers: dict[str, tuple[float, asyncio.Task]] = {}  # by fragment
        self._asked: dict[str, float] = {}  # when, by fragment; "" is the whole page
        self._as_of: dict[str, float] = {}  # when what each shows was asked for
        self._runs = 0  # how often the whole page was drawn to its end
        self._running: tuple[str, ...] = ()  # fragments of the run that goes on
        self._drawn: set[str] = set()  # fragments drawn since a run has ended
        self._news = asyncio.Event()
        self._trouble = ""
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task | None = None

    # What a person does

    async def open(self, address: str) -> None:
        """Load a page, and wait until it is drawn."""
        began = time.monotonic()
        self._page, _, self.query = address.partition("?")
        if not await self._browser.get(address):
            raise Trouble(f"The server has no /{address}.")
        # The frontend looks for the server below the page's own address first.
        for folder in (f"{self._page}/", "") if self._page else ("",):
            await self._ask_for_server(folder)
        self._hash = ""
        await self._connect()
        await self._rerun("the page", page_name=self._page)
        self._record.page.append(time.monotonic() - began)

    async def reload(self) -> None:
        """Load the page anew, from the address that it has now."""
        self.check()
        await self.close()
        await self.open(f"{self._page}?{self.query}")

    async def lose_connection(self) -> None:
        """As when the network is away for a moment: the browser goes on by itself."""
        if self._reader is not None and self._socket is not None:
            self._reader.cancel()
            self._socket.transport.abort()
        self._stop_timers()
        await self._ask_for_server()
        await self._connect(self._session)
        await self._rerun("a new connection")

    async def press(self, key: str, times: int = 1) -> None:
        """Press the button with that key, and wait until the page has answered."""
        button = self._button(key)
        if button is None:
            raise Trouble(f"There is no button {key} to press. {self}")
        pressed = WidgetStates(widgets=[WidgetState(id=button, trigger_value=True)])
        for _ in range(times - 1):
            await self._send(widget_states=pressed)
        began = time.monotonic()
        await self._rerun(f"a press of {key}", widget_states=pressed)
        self._record.click.append(time.monotonic() - began)

    def can_press(self, key: str) -> bool:
        """Whether the button with that key is there and enabled."""
        return self._button(key) is not None

    async def until(
        self, condition: Callable[[], Found], what: str, seconds: float
    ) -> Found:
        """Wait for a condition, and answer its value; Trouble after that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    self.check()
                    if found := condition():
                        return found
                    self._news.clear()
                    await self._news.wait()
        raise Trouble(f"No {what} in {seconds:.0f} s. {self}")

    def check(self) -> None:
        """Trouble if the page shows an error, or has lost its connection."""
        if self._trouble:
            raise Trouble(self._trouble)

    async def close(self) -> None:
        """Leave the page."""
        self._stop_timers()
        self._elements.clear()
        self._asked.clear()
        if self._reader is not None:
            self._reader.cancel()
        if self._socket is not None:
            await self._socket.close()

    # What a person reads

    def texts(self) -> list[str]:
        """What the page says, in no order."""
        return [text_of(element) for _, element in self._elements.values()]

    def as_of(self, said: re.Pattern[str]) -> float | None:
        """When the newest text that says so was asked for; None if nothing says so."""
        whole = self._as_of.get("", 0.0)
        times = [
            self._as_of.get(owner, whole)
            for owner, element in self._elements.values()
            if said.search(text_of(element))
        ]
        return max(times, default=None)

    def metric(self, label: str) -> str:
        """The figure under that label; empty if there is none."""
        metrics = (element.metric for _, element in self._elements.values())
        return next((each.body for each in metrics if each.label == label), "")

    def __str__(self) -> str:
        said = " · ".join(text for text in self.texts() if text)
        return f"/{self._page} says: {said[:300] or 'nothing'}"

    def _button(self, key: str) -> str | None:
        """The id of an enabled button, which ends with its key."""
        for _, element in self._elements.values():
            button = element.button
            if button.id.endswith(f"-{key}") and not button.disabled:
                return button.id
        return None

    # From the tab to the server

    async def _ask_for_server(self, folder: str = "") -> None:
        await self._browser.get(f"{folder}_stcore/health")
        await self._browser.get(f"{folder}_stcore/host-config")

    async def _connect(self, *session: str) -> None:
        self._socket = await self._browser.connect(*session)
        self._reader = asyncio.create_task(self._read(self._socket))

    async def _rerun(self, what: str, **more: object) -> None:
        """Have the whole page run, and wait for its end."""
        self._asked[""] = time.monotonic()
        runs = self._runs
        await self._send(**more)
        await self.until(lambda: self._runs > runs, f"answer to {what}", 60)

    async def _send(self, **more: object) -> None:
        state = ClientState(
            query_string=self.query,
            page_script_hash=self._hash,
            context_info=ContextInfo(
                url=f"{self._browser.url}/{self._page}", **CONTEXT
            ),
            **more,
        )
        assert self._socket
        with suppress(ConnectionClosed):  # whoever reads tells
            await self._socket.send(BackMsg(rerun_script=state).SerializeToString())

    async def _look_every(self, seconds: float, fragment: str) -> None:
        while True:
            await asyncio.sleep(seconds)
            self._asked.setdefault(fragment, time.monotonic())
            await self._send(fragment_id=fragment, is_auto_rerun=True)

    def _stop_timers(self, *fragments: str) -> None:
        for fragment in fragments or list(self._timers):
            if fragment in self._timers:
                self._timers.pop(fragment)[1].cancel()

    # From the server to the tab

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                self._receive(ForwardMsg.FromString(data))
            self._trouble = f"The server closed the connection. {self}"
        except ConnectionClosed as closed:
            self._trouble = f"The connection broke: {closed}. {self}"
        self._news.set()

    def _receive(self, message: ForwardMsg) -> None:
        match message.WhichOneof("type"):
            case "new_session":
                self._session = message.new_session.initialize.session_id
                self._begin(tuple(message.metadata.run.fragment_ids))
            case "navigation":
                self._hash = message.navigation.page_script_hash
            case "page_info_changed":
                self.query = message.page_info_changed.query_string
            case "delta":
                path = tuple(message.metadata.delta_path)
                self._draw(path, message.delta.fragment_id, message.delta.new_element)
            case "auto_rerun":
                self._set_timer(message.auto_rerun)
            case "stop_auto_rerun":
                if gone := message.stop_auto_rerun.fragment_ids:
                    self._stop_timers(*gone)
            case "page_not_found":
                self._trouble = f"There is no page {message.page_not_found.page_name!r}"
            case "script_finished":
                self._finish(message.script_finished)
                self._news.set()

    def _begin(self, fragments: tuple[str, ...]) -> None:
        """A run begins: of these fragments, or else of the whole page."""
        self._running = fragments
        if not fragments:
            self._stop_timers()
        self._elements = {
            path: (owner, element)
            for path, (owner, element) in self._elements.items()
            if fragments and owner not in fragments
        }

    def _draw(self, path: tuple[int, ...], owner: str, element: Element) -> None:
        self._elements[path] = owner, element
        self._drawn.add(owner)
        if element.HasField("exception"):
            self._trouble = f"An exception: {element.exception.message}"
        elif element.alert.format == Alert.ERROR:
            self._trouble = f"{element.alert.title} {element.alert.body}".strip()

    def _set_timer(self, wanted) -> None:
        seconds, fragment = wanted.interval, wanted.fragment_id
        if self._timers.get(fragment, (None,))[0] != seconds:
            self._stop_timers(fragment)
            task = asyncio.create_task(self._look_every(seconds, fragment))
            self._timers[fragment] = seconds, task

    def _finish(self, status: int) -> None:
        """A run ends, and with it the waiting of those whom it answers."""
        if status == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            self._trouble = f"The script can't be read. {self}"
        if status == ForwardMsg.FINISHED_EARLY_FOR_RERUN and not self._running:
            return  # the run that follows is the answer
        # Of fragments that come due together, the server tells only the last one's end.
        drawn = self._drawn | set(self._running)
        answered = drawn if self._running else set(self._asked)
        self._drawn = set()
        asked = {name: self._asked.pop(name, None) for name in answered}
        times = {name: when for name, when in asked.items() if when is not None}
        if self._running:
            self._as_of |= times
        elif times:
            self._as_of = {"": max(times.values())}
        now = time.monotonic()
        self._record.look += [now - when for name, when in times.items() if name]
        if not self._running:
            self._runs += 1
