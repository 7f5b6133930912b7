"""What the patch weigh_tabs mends: see test_streamlit_internals.py."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.applications import Starlette
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.session_manager import SessionClientDisconnectedError
from streamlit.web.server.starlette.starlette_websocket import create_websocket_routes
from websockets.asyncio.client import ClientConnection

from core.serving import streamlit_internals, tab_weights
from core.serving.streamlit_internals import weigh_tabs
from core.serving.visitor_cookie import COOKIE
from tests.app import event_loop
from tests.app.serving.connections import (
    Listener,
    ends,
    head,
    is_open,
    mends,
    new_runtime,
    serving,
    slow_browser,
    websocket,
)


@pytest.fixture(autouse=True)
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tab_weights, "ADDRESS_BYTES", 60_000)
    monkeypatch.setattr(tab_weights, "FREE_BYTES", 0)
    monkeypatch.setattr(tab_weights, "GROWN_BYTES", 0)


@asynccontextmanager
async def serving_sessions() -> AsyncIterator[tuple[uvicorn.Server, Runtime]]:
    runtime = new_runtime()
    await runtime.start()
    app = Starlette(routes=create_websocket_routes(runtime, None))
    async with serving(app) as server:
        yield server, runtime
    runtime.stop()
    await runtime.stopped


async def say(browser: ClientConnection, size: int) -> None:
    sign_of_life = BackMsg(app_heartbeat=True).SerializeToString()
    await browser.send(sign_of_life * (size // len(sign_of_life)))
    await asyncio.sleep(0.1)


async def session_of_closed_tab(server: uvicorn.Server, runtime: Runtime) -> AppSession:
    """The session of a tab that was heavy."""
    sessions = runtime._session_mgr
    async with websocket(server) as browser:
        await say(browser, 9_000)
        session = sessions.list_active_sessions()[-1].session
    while sessions.is_active_session(session.id):
        await asyncio.sleep(0.01)
    return session


def test_a_tab_knows_its_visitor(monkeypatch):
    """Who shares the places for downloads behind an address with others."""
    monkeypatch.setattr(streamlit_internals, "read_dated", lambda cookie: (cookie, 9.0))
    weigh_tabs()

    async def visitors() -> list[tuple[str, float]]:
        found = list[tuple[str, float]]()
        async with serving_sessions() as (server, runtime):
            for name in "ab":
                cookie = {"Cookie": f"{COOKIE}={name}"}
                async with websocket(server, additional_headers=cookie) as browser:
                    await say(browser, 100)
                    active = runtime._session_mgr.list_active_sessions()
                    tabs = [
                        vars(each.session)[streamlit_internals.TAB] for each in active
                    ]
                    found.append((tabs[-1].visitor, tabs[-1].age))
        return found

    assert event_loop.run(visitors()) == [("a", 9.0), ("b", 9.0)]


@pytest.mark.parametrize("is_whole", [True, False])
def test_messages_are_weighed_while_they_come(is_whole):
    async def all_stay() -> bool:
        async with (
            serving(Listener()) as server,
            websocket(server) as first,
            websocket(server) as heaviest,
            websocket(server) as small,
            websocket(server) as last,
        ):
            for browser, size in {first: 9_000, heaviest: 9_500, small: 900}.items():
                browser.transport.write(head(size) + bytes(size - (not is_whole)))
                assert await is_open(browser, 0.1)
            last.transport.write(head(9_000) + bytes(9_000 - (not is_whole)))
            stay = [await is_open(each, 0.1) for each in (first, small, last)]
            assert all(stay)
            return await is_open(heaviest, 0.1)

    mends(weigh_tabs, all_stay)


def test_tiny_messages_that_wait_weigh():
    async def stays() -> bool:
        app = Listener()
        app.may_listen.clear()
        async with serving(app) as server, slow_browser(server) as (_, writer):
            writer.write(head(0) * 1_000)
            ended = await ends(server)
            app.may_listen.set()
        return not ended

    mends(weigh_tabs, stays)


@pytest.mark.parametrize("limit", ["bytes", "messages"])
def test_a_browser_that_does_not_read_makes_room(limit, monkeypatch):
    monkeypatch.setattr(tab_weights, "ADDRESS_BYTES", 20_000_000)
    size, count = {"bytes": (1_000_000, 40), "messages": (30_000, 600)}[limit]
    page = ForwardMsg()
    page.delta.new_element.markdown.body = "x" * size

    async def stays() -> bool:
        async with (
            serving_sessions() as (server, runtime),
            slow_browser(server),
        ):
            while not (sessions := runtime._session_mgr.list_active_sessions()):
                await asyncio.sleep(0.01)
            with suppress(SessionClientDisconnectedError):
                for _ in range(count):
                    sessions[0].client.write_forward_msg(page)
            return not await ends(server)

    mends(weigh_tabs, stays)


def test_a_session_that_goes_on_is_as_heavy_as_before():
    async def stays() -> bool:
        async with serving_sessions() as (it, runtime):
            session = await session_of_closed_tab(it, runtime)
            protocols: Any = ["streamlit", "token", session.id]
            async with (
                websocket(it, subprotocols=protocols) as again,
                websocket(it) as other,
                websocket(it) as last,
            ):
                await say(again, 10)
                assert runtime._session_mgr.is_active_session(session.id)
                await say(other, 8_000)
                await say(last, 8_000)
                assert await is_open(other, 0.1)
                assert await is_open(last, 0.1)
                return await is_open(again, 0.1)

    mends(weigh_tabs, stays)


def test_what_closed_tabs_held_makes_room_and_is_collected_soon(monkeypatch):
    monkeypatch.setattr(streamlit_internals, "MOST_ENDED_BYTES", 20_000)
    monkeypatch.setattr(streamlit_internals, "COLLECT_SECONDS", 0.0)

    async def all_stay() -> bool:
        async with (
            serving_sessions() as (server, runtime),
            websocket(server) as browser,
        ):
            sessions = [
                weakref.ref(await session_of_closed_tab(server, runtime))
                for _ in range(5)
            ]
            await say(browser, 10)
            assert await is_open(browser, 0.1)
            stay = sum(session() is not None for session in sessions)
        assert stay >= 2
        return stay == 5

    gc.disable()
    try:
        mends(weigh_tabs, all_stay)
    finally:
        gc.enable()


def test_messages_of_many_objects_are_ignored():
    def asked(value: Any) -> int:
        message = BackMsg()
        widgets = message.rerun_script.widget_states.widgets
        widgets.add(id="a", json_value=json.dumps({"value": value}))
        session = Mock()
        AppSession.handle_backmsg(session, message)
        return session._handle_rerun_script_request.call_count

    async def takes_many() -> bool:
        assert asked("x" * 100_000)
        return bool(asked([{}] * 20_000))

    mends(weigh_tabs, takes_many)
