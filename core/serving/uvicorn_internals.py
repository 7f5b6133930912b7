"""All that the app uses of uvicorn's private parts, and its patches of them.

Streamlit runs its server by uvicorn, which requirements-web.txt pins by way of it. The
rules are those of streamlit_internals.py, which applies these patches with its own.
"""

import asyncio
import math
import socket
from typing import Any

import h11
import streamlit as st
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol as WebSocket,
)

LOOK = "_next_look"  # a connection's; see hang_up_on_half_messages
LOOK_SECONDS = 20.0  # between two looks at whether a connection's request has arrived
# How many looks may find the same request's headers, or its body, incomplete
MOST_LOOKS: dict[Any, int] = {h11.IDLE: 1, h11.SEND_BODY: 15}
MOST_LOOKS_AT_A_MESSAGE = 3  # that find the same message of a websocket incomplete
GRACE_SECONDS = 5  # for connections to close when the server ends


def largest_message() -> int:
    """How many bytes a message of a browser may have."""
    return int(st.get_option("server.maxWidgetStateSize") * 1e6)


def end_in_time() -> None:
    """End the server some seconds after Ctrl-C, even with open connections.

    If a browser reconnects while the server is ending, the browser may get no message,
    and uvicorn would wait for this connection forever: Streamlit leaves uvicorn's limit
    unset, and has no setting for it (streamlit/streamlit#13375 brought uvicorn).
    """
    shutdown = uvicorn.Server.shutdown

    async def in_time(server: uvicorn.Server, sockets: Any = None) -> None:
        server.config.timeout_graceful_shutdown = GRACE_SECONDS
        await shutdown(server, sockets)

    uvicorn.Server.shutdown = in_time  # type: ignore[assignment]


def send_at_once() -> None:
    """Turn Nagle's algorithm off, so that small packets leave the server at once.

    asyncio turns it off only for sockets marked as TCP, but Streamlit's isn't marked,
    nor is uvicorn's own (Kludex/uvicorn#3149). So each further answer on a connection
    waits some 40 ms until the browser has confirmed the previous packet. The five
    answers before a page connects came after 0.06 s, without this patch after 0.21 s
    (medians of n = 30). A page has 0.3 s for all.
    """
    made = H11Protocol.connection_made

    def connection_made(protocol: Any, transport: asyncio.Transport) -> None:
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made(protocol, transport)

    H11Protocol.connection_made = connection_made  # type: ignore[assignment]


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


def hang_up_on_half_messages() -> None:
    """End websockets whose message is too large, or doesn't arrive in time.

    uvicorn waits for the rest of a message forever. It takes messages as large as those
    that the server sends, though Streamlit refuses what is larger than a browser's may
    be. And it keeps a list of all fragments, which take more memory than what is in
    them, and without end if nothing is in them. Here they are joined as they come.
    """
    begin, end = WebSocket.connection_made, WebSocket.connection_lost

    def connection_made(protocol: WebSocket, transport: asyncio.Transport) -> None:
        begin(protocol, transport)
        protocol.conn.max_message_size = largest_message()
        look_later(protocol, None, 0)

    def connection_lost(protocol: WebSocket, error: Exception | None) -> None:
        vars(protocol)[LOOK].cancel()  # which holds what has come of the message
        end(protocol, error)

    def look_later(protocol: WebSocket, *before: Any) -> None:
        later = protocol.loop.call_later(LOOK_SECONDS, look, protocol, *before)
        vars(protocol)[LOOK] = later

    def look(protocol: WebSocket, before: object, looks: int) -> None:
        if protocol.transport.is_closing():
            return
        now = protocol.frames  # another list for each message
        is_half = bool(now or protocol.conn.reader.buffer)
        # While the app has yet to take the message before, uvicorn reads nothing.
        is_late = is_half and now is before and not protocol.read_paused
        looks = looks + 1 if is_late else 0
        if looks >= MOST_LOOKS_AT_A_MESSAGE:
            return protocol.transport.abort()
        look_later(protocol, now, looks)

    def join(protocol: WebSocket, fragment: Any) -> None:
        message: Any = protocol.frames[0]
        if not isinstance(message, bytearray):
            message = bytearray(message)
        message += fragment.data
        protocol.frames[0] = message
        if fragment.fin:
            protocol.frames[0] = bytes(message)
            protocol.send_receive_event_to_app()

    WebSocket.connection_made = connection_made  # type: ignore[assignment, method-assign]
    WebSocket.connection_lost = connection_lost  # type: ignore[assignment, method-assign]
    WebSocket.handle_cont = join  # type: ignore[assignment, method-assign]


PATCHES = (
    end_in_time,
    send_at_once,
    hang_up_on_half_requests,
    hang_up_on_half_messages,
)
