import asyncio
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from streamlit.file_util import get_static_dir
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.web.server.starlette.starlette_static_routes import (
    create_streamlit_static_handler,
)
from uvicorn.protocols.http.h11_impl import H11Protocol

from core.jobs.cluster import ROOT
from core.serving import streamlit_patches
from core.serving.streamlit_patches import give_back_turn, take_turn
from core.ui import server
from tests.app import event_loop
from tests.app.ui.client import Client

TITLES = sorted(file.stem.partition("_")[2] for file in ROOT.glob("pages/*.py"))
BEGIN = H11Protocol.connection_made  # the patch is undone after a test
OURS = Client(Starlette(routes=streamlit_patches.page_routes(TITLES)))


@pytest.fixture(autouse=True)
def turn_given_back():
    yield
    give_back_turn()


def test_one_patch_can_be_left_out(monkeypatch):
    patches = [Mock(__name__=name) for name in "abc"]
    monkeypatch.setattr(streamlit_patches, "PATCHES", patches)
    monkeypatch.setenv("WITHOUT_PATCH", "b")
    streamlit_patches.apply()
    assert [patch.called for patch in patches] == [True, False, True]


def test_a_connection_sends_small_packets_at_once():
    with socket.socket() as listening:  # without a protocol, as Streamlit's is
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        streamlit_patches.send_at_once()
        with socket.create_connection(listening.getsockname()):
            connection, _ = listening.accept()
            with connection:
                assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def in_thread(draw) -> threading.Thread:
    thread = threading.Thread(target=draw)
    thread.start()
    return thread


def test_one_page_is_drawn_at_a_time(monkeypatch):
    monkeypatch.setattr(streamlit_patches, "TURN_SECONDS", 60.0)
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
    monkeypatch.setattr(streamlit_patches, "TURN_SECONDS", 0.01)
    take_turn()
    in_thread(take_turn).join(60)
    thread = in_thread(lambda: (take_turn(), give_back_turn()))
    thread.join(60)
    assert not thread.is_alive()


def test_a_page_that_asks_a_worker_lets_the_next_one_be_drawn(monkeypatch):
    monkeypatch.setattr(streamlit_patches, "TURN_SECONDS", 60.0)

    def ask(*_arguments, **_more) -> str:
        thread = in_thread(lambda: (take_turn(), give_back_turn()))
        thread.join(60)
        assert not thread.is_alive()
        return "an answer"

    monkeypatch.setattr("core.jobs.engine.Engine.ask", ask)
    take_turn()
    engine = object.__new__(server.PagesEngine)
    assert engine.ask("core.devices:describe") == "an answer"


def test_a_server_ends_while_connections_are_open():
    server = uvicorn.Server(uvicorn.Config("app:app"))
    streamlit_patches.end_in_time()
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


def test_a_container_is_sent_before_what_it_holds(monkeypatch):
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)
    streamlit_patches.send_what_waits()
    queue = ForwardMsgQueue()
    container, reference = ForwardMsg(), ForwardMsg()
    container.metadata.delta_path[:] = [0, 0]
    container.delta.fragment_id = "wall"
    container.delta.add_block.SetInParent()
    reference.metadata.delta_path[:] = [0, 0, 0]
    reference.ref_hash = "a picture that the browser has"
    for message in (container, reference):
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["wall"])
    assert queue.flush() == [container, reference]


def by_streamlit(path: str) -> Response:
    handler = create_streamlit_static_handler(get_static_dir(), None)
    request = {"type": "http", "method": "GET", "path": f"/{path}", "headers": []}
    return event_loop.run(handler.get_response(path or ".", request))


@pytest.mark.parametrize("page", ["", *TITLES])
def test_a_page_address_is_answered_as_by_streamlit(page):
    ours, theirs = OURS.get(f"/{page}"), by_streamlit(page)
    assert ours.status == theirs.status_code == 200
    head, body = Path(theirs.path).read_text("utf-8").split("</head>")
    assert ours.body.startswith(head)
    assert ours.body.endswith(body)
    for name in ("content-type", "cache-control"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize("path", ["health", "host-config"])
def test_there_is_no_server_below_a_page(path):
    for page in TITLES:
        assert OURS.get(f"/{page}/_stcore/{path}").status == 404
        with pytest.raises(HTTPException) as error:
            by_streamlit(f"{page}/_stcore/{path}")
        assert error.value.status_code == 404


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
    monkeypatch.setattr(streamlit_patches, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(H11Protocol, "connection_made", BEGIN)
    streamlit_patches.hang_up_on_half_requests()

    async def app(_scope, receive, send) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def ask() -> None:
        config = uvicorn.Config(app, port=0, lifespan="off", timeout_keep_alive=60)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        where = server.servers[0].sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*where)
        writer.write(sent)
        await asyncio.wait_for(reader.read(), 30)  # until the server hangs up
        writer.close()
        server.should_exit = True
        await serving

    event_loop.run(ask())
