"""Servers and connections with which tests show what a patch mends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.runtime import Runtime, RuntimeConfig
from websockets import ConnectionClosed
from websockets.asyncio.client import ClientConnection, connect

from core.jobs.cluster import ROOT
from tests.app import event_loop

SCRIPT = str(ROOT / "home.py")

Fault = Callable[[], Coroutine[Any, Any, bool]]


def new_runtime() -> Runtime:
    Runtime._instance = None
    media = MemoryMediaFileStorage("/media")
    return Runtime(RuntimeConfig(SCRIPT, media, MemoryUploadedFileManager("/upload")))


def mends(patch: Callable[[], None], fault: Fault) -> None:
    """Streamlit has a fault without the patch, and none with it."""
    assert event_loop.run(fault()), f"{patch.__name__} isn't needed any more"
    patch()
    assert not event_loop.run(fault())


@asynccontextmanager
async def serving(app: Any, **settings: Any) -> AsyncIterator[uvicorn.Server]:
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        ws="websockets-sansio",
        timeout_graceful_shutdown=5,
        **settings,
    )
    server = uvicorn.Server(config)
    ending = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        await ending


def address(server: uvicorn.Server) -> tuple[str, int]:
    return server.servers[0].sockets[0].getsockname()


class Listener:
    """An app that takes the messages of websockets, once it may."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.may_listen = asyncio.Event()
        self.may_listen.set()

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await self.may_listen.wait()
        while (message := await receive())["type"] == "websocket.receive":
            self.heard.append(message["bytes"])


UPGRADE = (
    b"GET /_stcore/stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def websocket(server: uvicorn.Server, **more: Any) -> connect:
    host, port = address(server)
    url = f"ws://{host}:{port}/_stcore/stream"
    return connect(url, compression=None, close_timeout=0.1, **more)


class Talker:
    """An app that sends so much at once that no buffer takes it, and then `more`."""

    def __init__(self, *more: Any) -> None:
        self.more = more

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "bytes": bytes(20_000_000)})
        for message in self.more:
            await send(message)


@asynccontextmanager
async def slow_browser(
    server: uvicorn.Server,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A websocket of a browser that reads only what the test reads."""
    reader, writer = await asyncio.open_connection(*address(server))
    writer.write(UPGRADE + b"\r\n")
    await reader.readuntil(b"\r\n\r\n")
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def ends(server: uvicorn.Server, seconds: float = 0.5) -> bool:
    """Whether the server's only connection ends in time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while server.server_state.connections:
                await asyncio.sleep(0.01)
    return not server.server_state.connections


def head(size: int, opcode: int = 2, is_last: bool = True) -> bytes:
    """What comes before the bytes of a websocket's frame that a mask of 0 leaves."""
    first = opcode | (128 if is_last else 0)
    return bytes([first, 255]) + size.to_bytes(8, "big") + bytes(4)


async def is_open(connection: ClientConnection, seconds: float = 0.5) -> bool:
    with suppress(ConnectionClosed, TimeoutError):
        await asyncio.wait_for(connection.recv(), seconds)
    return connection.close_code is None
