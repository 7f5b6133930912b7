"""Each patch has a test that fails once uvicorn doesn't need the patch any more."""

import asyncio
import math
import socket
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from streamlit.web.server.starlette import starlette_server
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from core.serving import uvicorn_internals
from tests.app import event_loop
from tests.app.serving.connections import (
    UPGRADE,
    Listener,
    Talker,
    address,
    ends,
    head,
    is_open,
    mends,
    serving,
    slow_browser,
    websocket,
)


def test_a_server_ends_while_connections_are_open(monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "GRACE_SECONDS", 0.05)
    settings = starlette_server._get_uvicorn_config_kwargs()
    assert "timeout_graceful_shutdown" not in settings, "end_in_time isn't needed"
    uvicorn_internals.end_in_time()

    async def ending() -> bool:
        ended = uvicorn.Server(uvicorn.Config("app:app"))
        ended.lifespan = SimpleNamespace(shutdown=lambda: asyncio.sleep(0))
        ended.servers = []
        hangs = asyncio.create_task(asyncio.sleep(3600))
        ended.server_state.tasks.add(hangs)
        await asyncio.wait_for(ended.shutdown(), 30)
        await asyncio.wait([hangs])
        return hangs.cancelled()

    assert event_loop.run(ending())


def test_a_connection_sends_small_packets_at_once():
    async def delays() -> bool:
        taken: asyncio.Queue[bool] = asyncio.Queue()

        class Protocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:
                super().connection_made(transport)
                connection = transport.get_extra_info("socket")
                no_delay = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                taken.put_nowait(not no_delay)

        config = uvicorn.Config(Starlette(), lifespan="off")
        make = partial(Protocol, config, ServerState(), {})
        listening = starlette_server._bind_socket("127.0.0.1", 0, 8)
        server = await asyncio.get_running_loop().create_server(make, sock=listening)
        async with server:
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await asyncio.wait_for(taken.get(), 30)

    mends(uvicorn_internals.send_at_once, delays)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
MANY = b"A:\r\n" * (uvicorn_internals.MOST_HEADER_LINES + 1)
LONG = b"A: " + b"a" * uvicorn_internals.MOST_HEADER_BYTES


@pytest.mark.parametrize(
    "sent",
    [
        *(kind + MANY + b"\r\n" for kind in (GET, UPGRADE)),
        *(kind + LONG + b"\r\n\r\n" for kind in (GET, UPGRADE)),
        GET + b"\r\n" + GET + MANY + b"\r\n",
        UPGRADE + b"A: " + b"a" * 9_000 + b"\r\n\r\n",  # websockets' own limit
    ],
)
def test_a_request_with_long_headers_is_answered_and_ends(sent):
    async def is_refused() -> bool:
        async with serving(Starlette()) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            writer.write(sent)
            try:
                return b" 431 " in await asyncio.wait_for(reader.read(), 1)
            except TimeoutError:
                return False
            finally:
                writer.close()

    async def is_taken() -> bool:
        return not await is_refused()

    mends(uvicorn_internals.refuse_long_headers, is_taken)


@pytest.mark.parametrize(
    "sent", [GET + b"Cookie: " + b"a" * 8_000 + b"\r\n" + b"A: a\r\n" * 60 + b"\r\n"]
)
def test_the_headers_of_a_browser_may_be_long(sent):
    uvicorn_internals.refuse_long_headers()

    async def answer() -> bytes:
        async with serving(Starlette()) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            for part in (sent[:100], sent[100:]):
                writer.write(part)
                await asyncio.sleep(0.05)
            line = await reader.readline()
            writer.close()
            return line

    assert b" 404 " in event_loop.run(answer())


POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


def chunks(size: int, count: int) -> bytes:
    return (b"%x\r\n" % size + bytes(size) + b"\r\n") * count


class Reader:
    """An app that reads so much of a request's body, at most, and then answers."""

    def __init__(self, most: float = math.inf) -> None:
        self.most, self.read = most, 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        has_more = True
        while has_more and self.read < self.most:
            message = await receive()
            self.read += len(message.get("body", b""))
            has_more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})


@pytest.mark.parametrize("most", [0, 2_000, math.inf])
def test_a_body_has_few_tiny_chunks_also_after_its_answer(most, caplog):
    """However many are sent: the connection ends at about the hundredth."""
    app = Reader(most)

    async def stays() -> bool:
        async with serving(app) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            writer.write(CHUNKED)
            if app.most == 0:
                await reader.readuntil(b"\r\n\r\n")
            app.read = 0
            writer.write(chunks(1, 10_000))
            ended = await ends(server)
            writer.transport.abort()
            return not ended

    mends(uvicorn_internals.refuse_tiny_chunks, stays)
    assert app.read <= uvicorn_internals.CHUNKS_AT_ONCE + 50
    assert "Traceback" not in caplog.text


def test_a_body_of_tiny_chunks_is_answered():
    uvicorn_internals.refuse_tiny_chunks()

    async def answer() -> bytes:
        async with serving(Reader()) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            writer.write(CHUNKED + chunks(1, 150))
            line = await asyncio.wait_for(reader.readline(), 5)
            writer.close()
            return line

    assert b" 400 " in event_loop.run(answer())


@pytest.mark.parametrize(
    ("head", "body", "slice_bytes"),
    [
        (CHUNKED, chunks(1_200, 2_000) + chunks(1, 50) + b"0\r\n\r\n", 1_000),
        (CHUNKED, chunks(1_000_000, 2) + b"0\r\n\r\n", 10_000),
        (POST + b"Content-Length: 100000\r\n\r\n", bytes(100_000), 100),
    ],
)
def test_a_body_may_come_in_small_packets(head, body, slice_bytes):
    uvicorn_internals.refuse_tiny_chunks()
    app = Reader()

    async def answer() -> bytes:
        async with serving(app) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            writer.write(head)
            for start in range(0, len(body), slice_bytes):
                writer.write(body[start : start + slice_bytes])
                await writer.drain()
            line = await asyncio.wait_for(reader.readline(), 10)
            writer.close()
            return line

    assert b" 204 " in event_loop.run(answer())
    assert app.read >= 100_000


PING, PONG = head(0, 9), head(0, 10)
FIRST, PART = head(0, is_last=False), head(0, 0, is_last=False)


@pytest.mark.parametrize(
    "sent", [PING * 200, PONG * 200, FIRST + PART * 200, head(1) + b"a"]
)
def test_a_connection_sends_few_frames_with_little_in_them(sent):
    async def stays() -> bool:
        app = Listener()
        app.may_listen.clear()
        async with serving(app) as server, slow_browser(server) as (_, writer):
            writer.write(sent * (2_000 if sent.endswith(b"a") else 1))
            ended = await ends(server)
            app.may_listen.set()
        return not ended

    mends(uvicorn_internals.hang_up_on_many_frames, stays)


def test_a_connection_may_send_what_a_browser_sends():
    """Some hundred messages while the server is busy, and a long one in parts."""
    uvicorn_internals.hang_up_on_many_frames()
    uvicorn_internals.hang_up_on_half_messages()
    part = bytes(10_000)

    async def send() -> list[bytes]:
        app = Listener()
        app.may_listen.clear()
        async with serving(app) as server, websocket(server) as browser:
            browser.transport.write((head(500) + part[:500]) * 300 + PONG * 20)
            browser.transport.write(head(10_000, is_last=False) + part)
            browser.transport.write((head(10_000, 0, False) + part) * 50)
            browser.transport.write(head(0, 0))
            app.may_listen.set()
            assert await is_open(browser, 0.2)
        return app.heard

    heard = event_loop.run(send())
    assert [*map(len, heard)] == [500] * 300 + [510_000]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-A: ",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nX-A: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
    ],
)
def test_a_request_that_never_arrives_does_not_hold_its_connection(sent, monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.05)
    uvicorn_internals.hang_up_on_half_requests()

    async def app(_scope, receive, send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> None:
        async with serving(app, timeout_keep_alive=60) as server:
            reader, writer = await asyncio.open_connection(*address(server))
            writer.write(sent)
            await asyncio.wait_for(reader.read(), 30)  # until the server hangs up
            writer.close()

    event_loop.run(ask())


def test_an_answer_that_nobody_reads_does_not_hold_its_connection(monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.05)

    async def app(_scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(20_000_000)})

    async def stays() -> bool:
        async with serving(app) as server:
            _, writer = await asyncio.open_connection(*address(server))
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            await asyncio.sleep(0.1)
            try:
                return not await ends(server)
            finally:
                writer.transport.abort()

    mends(uvicorn_internals.hang_up_on_half_requests, stays)


@pytest.mark.parametrize(
    "more", [(), ({"type": "websocket.close"},), ({"type": "websocket.send"},)]
)
def test_messages_that_nobody_reads_do_not_hold_their_connection(more, monkeypatch):
    """Neither while it is closing nor while it waits to send something more."""
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.05)

    async def stays() -> bool:
        async with (
            serving(Talker(*more), ws_ping_interval=0.03) as server,
            slow_browser(server),
        ):
            return not await ends(server)

    mends(uvicorn_internals.hang_up_on_half_messages, stays)


def test_a_browser_may_read_slowly(monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.05)
    uvicorn_internals.hang_up_on_half_messages()

    async def reads_all() -> None:
        async with serving(Talker()) as server, slow_browser(server) as (reader, _):
            for _ in range(20):
                await reader.readexactly(900_000)
                await asyncio.sleep(0.04)
            await reader.readexactly(2_000_000)

    event_loop.run(reads_all())


def test_pongs_that_nobody_reads_do_not_pile_up():
    async def pile_up() -> bool:
        async with serving(Listener()) as server, slow_browser(server) as (_, writer):
            (connection,) = server.server_state.connections
            sock = connection.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
            for _ in range(80):
                writer.write((b"\x89\xfd" + bytes(4 + 125)) * 1_000)
                await asyncio.sleep(0.01)
            return connection.transport.get_write_buffer_size() > 500_000

    mends(uvicorn_internals.drop_unread_pongs, pile_up)


@pytest.mark.parametrize(
    "sent",
    [
        head(0, is_last=False),
        head(9, is_last=False) + b"the first",
        head(9) + b"half",
        b"\x82",
        head(1) + b"a" + head(9) + b"half",
    ],
)
def test_a_message_that_never_arrives_does_not_hold_its_connection(sent, monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.02)

    async def waits() -> bool:
        app = Listener()
        async with serving(app) as server, websocket(server) as browser:
            browser.transport.write(sent)
            return await is_open(browser)

    mends(uvicorn_internals.hang_up_on_half_messages, waits)


def test_a_message_may_wait_for_the_app(monkeypatch):
    monkeypatch.setattr(uvicorn_internals, "LOOK_SECONDS", 0.02)
    uvicorn_internals.hang_up_on_half_messages()

    async def send() -> list[bytes]:
        app = Listener()
        app.may_listen.clear()
        async with serving(app) as server, websocket(server) as browser:
            browser.transport.write(head(1) + b"a" + head(4) + b"ha")
            assert await is_open(browser)
            browser.transport.write(b"lf")
            app.may_listen.set()
            assert await is_open(browser)  # and it has nothing more to say
        return app.heard

    assert event_loop.run(send()) == [b"a", b"half"]


def test_fragments_are_joined_as_they_come():
    async def keeps_many() -> bool:
        app = Listener()
        async with serving(app) as server, websocket(server) as browser:
            browser.transport.write(head(2, is_last=False) + b"ab")
            for _ in range(50):
                browser.transport.write(head(1, 0, False) + b"c" + head(0, 0, False))
            await asyncio.sleep(0.1)
            (connection,) = server.server_state.connections
            count = len(connection.frames)
            browser.transport.write(head(1, 0) + b"d")
            await asyncio.sleep(0.1)
            assert app.heard == [b"ab" + b"c" * 50 + b"d"]
        return count > 1

    mends(uvicorn_internals.hang_up_on_half_messages, keeps_many)


def test_a_browser_sends_no_more_than_its_widgets_may_hold():
    async def takes_more() -> bool:
        async with (
            serving(Listener(), ws_max_size=10_000_000) as server,
            websocket(server) as browser,
        ):
            browser.transport.write(head(1_000_001) + b"a")
            return await is_open(browser)

    mends(uvicorn_internals.hang_up_on_half_messages, takes_more)
