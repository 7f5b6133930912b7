import asyncio
import json
import uuid
from contextlib import suppress

import psutil
import pytest
import requests
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets import ConnectionClosed

from tests.app import event_loop
from tools.load.tab import XSRF, Browser
from tools.server import Server

MEGABYTE = 1_000_000


@pytest.mark.slow
def test_a_flood_of_uploads_does_not_stay_in_memory(server: Server) -> None:
    memory = psutil.Process(server.process.pid).memory_info

    async def upload() -> None:
        browser = Browser(server.url)
        await browser.get("_stcore/health")  # brings the token
        async with await browser.connect() as socket:
            await socket.send(BackMsg(rerun_script=ClientState()).SerializeToString())
            session = ""
            while not session:
                message = ForwardMsg.FromString(await socket.recv())
                session = message.new_session.initialize.session_id
            before = memory().rss
            for _ in range(10):
                url = f"{server.url}/_stcore/upload_file/{session}/{uuid.uuid4()}"
                await asyncio.to_thread(put, browser._session, url, 19 * MEGABYTE)
            assert memory().rss - before < 120 * MEGABYTE

    event_loop.run(upload())


@pytest.mark.slow
def test_tiny_objects_of_tabs_take_little_memory(server: Server) -> None:
    """A megabyte of them would take 34 MB in each tab's session."""
    memory = psutil.Process(server.process.pid).memory_info
    value = json.dumps({"value": [{"": 0}] * 110_000}, separators=(",", ":"))

    async def fill() -> None:
        async with await Browser(server.url).connect() as socket:
            full, drawn = ClientState(page_name="Mistakes"), list[Delta]()

            async def draw(*states: ClientState) -> None:
                for state in states:
                    message = BackMsg(rerun_script=state).SerializeToString()
                    await socket.send(message)
                answer = ForwardMsg()
                while answer.WhichOneof("type") != "script_finished":
                    answer = ForwardMsg.FromString(await socket.recv())
                    if page := answer.new_session.page_script_hash:
                        full.page_script_hash = page
                    field = answer.delta.new_element.bidi_component
                    if field.component_name.endswith("code_editor"):
                        drawn.append(answer.delta)

            await draw(full)
            full.fragment_id = drawn[0].fragment_id
            empty = ClientState.FromString(full.SerializeToString())
            field = drawn[0].new_element.bidi_component
            full.widget_states.widgets.add(id=field.id, json_value=value)
            await draw(full, empty)

    event_loop.run(fill())
    before = memory().rss
    for _ in range(10):
        event_loop.run(fill())
    assert memory().rss - before < 100 * MEGABYTE


def put(browser: requests.Session, url: str, size: int) -> None:
    """Upload a file of zeros, as the browser of a page does."""
    token = {"X-Xsrftoken": browser.cookies[XSRF]}
    answer = browser.put(url, headers=token, files={"file": bytes(size)}, timeout=60)
    assert answer.status_code == 204, answer.text


def test_a_huge_message_ends_the_connection(server: Server) -> None:

    async def send() -> None:
        async with await Browser(server.url).connect() as socket:
            with suppress(ConnectionClosed):  # in the middle of it
                await socket.send(bytes(11 * MEGABYTE))
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 1009  # too big

    event_loop.run(send())
