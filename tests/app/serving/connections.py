"""Servers and connections with which tests show what a patch mends."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from websockets import ConnectionClosed
from websockets.asyncio.client import ClientConnection, connect

from tests.app import event_loop

Fault = Callable[[], Coroutine[Any, Any, bool]]


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


def websocket(server: uvicorn.Server, **more: Any) -> connect:
    host, port = address(server)
    url = f"ws://{host}:{port}/_stcore/stream"
    return connect(url, compression=None, close_timeout=0.1, **more)


def head(size: int, opcode: int = 2, is_last: bool = True) -> bytes:
    """What comes before the bytes of a websocket's frame that a mask of 0 leaves."""
    first = opcode | (128 if is_last else 0)
    return bytes([first, 255]) + size.to_bytes(8, "big") + bytes(4)


async def is_open(connection: ClientConnection, seconds: float = 0.5) -> bool:
    with suppress(ConnectionClosed, TimeoutError):
        await asyncio.wait_for(connection.recv(), seconds)
    return connection.close_code is None
