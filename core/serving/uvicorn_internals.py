"""All that the app uses of uvicorn's private parts, and its patches of them.

Streamlit runs its server by uvicorn, which requirements-web.txt pins by way of it. The
rules are those of streamlit_internals.py, which applies these patches with its own.
"""

import asyncio
import math
import socket
import sys
import time
from functools import partial
from typing import Any

import h11
import streamlit as st
import uvicorn
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol as WebSocket,
)
from websockets.frames import Frame, Opcode

from core.serving.message_pace import Pace
from core.serving.tab_weights import PER_BYTE, TAB, Tab, Tabs

GOES = "_goes"  # a connection's attribute: how many bytes it has sent last
QUEUED_BYTES = 500  # that each message takes beside its content while it waits
LOOK, UNREAD = "_next_look", "_unread"  # a connection's; see hang_up_on_half_messages
LOOK_SECONDS = 20.0  # between two looks at whether a connection's request has arrived
# How many looks may find the same request's headers, or its body, incomplete
MOST_LOOKS: dict[Any, int] = {h11.IDLE: 1, h11.SEND_BODY: 15}
MOST_LOOKS_AT_A_MESSAGE = 3  # that find the same message of a websocket incomplete
MOST_LOOKS_UNREAD = 2  # that find as much as before waiting for a browser to read it
# Of a request's headers. Those of a browser with many cookies have 4 kB in 30 lines.
MOST_HEADER_BYTES, MOST_HEADER_LINES = 16_000, 128
TOO_LONG = b"The request's headers are too long. Try again without this site's cookies."
# Chunks of a request's body with fewer bytes are little. Proxies make chunks of what
# one packet brings, which is 1,200 bytes or more.
LITTLE_CHUNK = 500
CHUNKS_AT_ONCE = 100.0  # little ones of a body, and LITTLE_FRAMES per second then
PACE = "_pace"  # a connection's or body's attribute; see hang_up_on_many_frames
SLICE_BYTES = 4_096  # of what has come that are looked at before the frames are counted
LITTLE_BYTES = 1_000  # a frame with more counts by its bytes: see MessagePace
# Little frames of a connection per second, and at once. Its messages come at the pace
# of MessagePace, after those that the browser has sent while the server was busy.
LITTLE_FRAMES, FRAMES_AT_ONCE = 30.0, 1_000.0
# What other little frames count: a browser answers a ping every 20 s or so, and sends
# messages whole, or in large parts.
NO_MESSAGE = 10
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
    """End connections whose next request doesn't arrive in time, or whose answer stays.

    uvicorn has a time limit only until the next request's first byte. Without this
    patch, half-sent requests hold their connections, which are limited, forever. So do
    browsers that don't read: closing a connection waits until everything is sent.
    """
    begin = H11Protocol.connection_made

    def connection_made(protocol: H11Protocol, transport: asyncio.Transport) -> None:
        begin(protocol, transport)
        protocol.loop.call_later(LOOK_SECONDS, look, protocol, (None, h11.IDLE, 0), 0)

    def look(protocol: H11Protocol, before: object, looks: int) -> None:
        if protocol not in protocol.connections:  # it is over, or a websocket now
            return
        unread = protocol.transport.get_write_buffer_size()
        now = protocol.cycle, protocol.conn.their_state, unread
        looks = looks + 1 if now == before else 0
        most = MOST_LOOKS_UNREAD if unread else MOST_LOOKS.get(now[1], math.inf)
        if looks >= most:
            return protocol.transport.abort()
        protocol.loop.call_later(LOOK_SECONDS, look, protocol, now, looks)

    H11Protocol.connection_made = connection_made  # type: ignore[assignment]


def refuse_long_headers() -> None:
    """Answer requests with long headers by status 431, and end the connection.

    h11 limits only headers that have yet to come whole, and many lines of a few bytes
    take it and uvicorn 0.4 s for each MB. And if the websockets package refuses a
    websocket's headers, because of their number or length, uvicorn neither sends its
    answer nor ends the connection, which holds ten times the headers' bytes.
    """
    make, extract = H11Protocol.__init__, ReceiveBuffer.maybe_extract_lines
    refuse, receive = H11Protocol.send_400_response, WebSocket.data_received

    def of_few_bytes(
        protocol: H11Protocol, config: uvicorn.Config, *more: Any, **named: Any
    ) -> None:
        config.h11_max_incomplete_event_size = MOST_HEADER_BYTES
        make(protocol, config, *more, **named)

    def maybe_extract_lines(buffer: ReceiveBuffer) -> list[bytearray] | None:
        lines = extract(buffer)
        is_long = sum(map(len, lines or ())) > MOST_HEADER_BYTES
        if lines and (is_long or len(lines) > MOST_HEADER_LINES):
            raise h11.RemoteProtocolError("too long", error_status_hint=431)
        return lines

    def send_400_response(protocol: H11Protocol, why: str) -> None:
        problem = sys.exception()
        if getattr(problem, "error_status_hint", 400) != 431:
            return refuse(protocol, why)
        protocol.transport.write(
            b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
            % (len(TOO_LONG), TOO_LONG)
        )
        protocol.transport.close()

    def data_received(protocol: WebSocket, data: bytes) -> None:
        receive(protocol, data)
        if protocol.conn.handshake_exc and not protocol.transport.is_closing():
            protocol.transport.write(b"".join(protocol.conn.data_to_send()))
            protocol.transport.close()

    H11Protocol.__init__ = of_few_bytes  # type: ignore[assignment]
    H11Protocol.send_400_response = send_400_response  # type: ignore[assignment]
    ReceiveBuffer.maybe_extract_lines = maybe_extract_lines  # type: ignore[assignment]
    WebSocket.data_received = data_received  # type: ignore[assignment]


def refuse_tiny_chunks() -> None:
    """End requests whose body comes in many tiny chunks.

    Each takes some 4 µs, and 256 kB of them are looked at at once. Browsers announce a
    body's length, but a proxy may pass it on in chunks. Those that come after the
    answer count, too. uvicorn can't answer twice, so the connection only ends then.
    """
    read, refuse = ChunkedReader.__call__, H11Protocol.send_400_response

    def in_large_parts(
        reader: ChunkedReader, buffer: ReceiveBuffer
    ) -> h11.Data | h11.EndOfMessage | None:
        event = read(reader, buffer)
        if isinstance(event, h11.Data) and event.chunk_start:
            size = len(event.data) + reader._bytes_in_chunk
            pace = vars(reader).setdefault(PACE, Pace(LITTLE_FRAMES, CHUNKS_AT_ONCE))
            if size < LITTLE_CHUNK and pace.delay(time.monotonic()):
                raise h11.RemoteProtocolError("too many tiny chunks")
        return event

    def send_400_response(protocol: H11Protocol, why: str) -> None:
        if protocol.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            refuse(protocol, why)
        else:
            protocol.transport.abort()

    H11Protocol.send_400_response = send_400_response  # type: ignore[assignment]
    ChunkedReader.__call__ = in_large_parts  # type: ignore[assignment, method-assign]


def hang_up_on_many_frames() -> None:
    """End websockets that send many frames with little or nothing in them.

    Each takes some 4 µs. uvicorn reads on after a ping, a pong, or a part of a message,
    and it looks at all that it reads at once, which may be 40,000 of them.
    """
    receive, handle = WebSocket.data_received, WebSocket.handle_events

    def data_received(protocol: WebSocket, data: bytes) -> None:
        for start in range(0, len(data), SLICE_BYTES):
            if not protocol.transport.is_closing():
                receive(protocol, data[start : start + SLICE_BYTES])

    def handle_events(protocol: WebSocket) -> None:
        if many := sum(map(count, protocol.conn.events)):
            new = Pace(LITTLE_FRAMES, FRAMES_AT_ONCE)
            pace = vars(protocol).setdefault(PACE, new)
            if pace.delay(protocol.loop.time(), many):
                return abort(protocol)
        handle(protocol)

    def count(event: Any) -> int:
        if not isinstance(event, Frame) or len(event.data) > LITTLE_BYTES:
            return 0
        return 1 if event.opcode in (Opcode.TEXT, Opcode.BINARY) else NO_MESSAGE

    WebSocket.data_received = data_received  # type: ignore[assignment]
    WebSocket.handle_events = handle_events  # type: ignore[assignment]


def hang_up_on_half_messages() -> None:
    """End websockets whose message is too large, or that stand still.

    uvicorn waits for the rest of a message forever. It takes messages as large as those
    that the server sends, though Streamlit refuses what is larger than a browser's may
    be. And it keeps a list of all fragments, which take more memory than what is in
    them, and without end if nothing is in them. Here they are joined as they come.

    If a browser doesn't read, uvicorn closes the connection after a while, which waits
    until everything is sent: forever, too.
    """
    begin, end = WebSocket.connection_made, WebSocket.connection_lost
    resume = WebSocket.resume_writing

    def connection_made(protocol: WebSocket, transport: asyncio.Transport) -> None:
        begin(protocol, transport)
        protocol.conn.max_message_size = largest_message()
        look_later(protocol, None, 0, 0)

    def connection_lost(protocol: WebSocket, error: Exception | None) -> None:
        vars(protocol)[LOOK].cancel()  # which holds what has come of the message
        end(protocol, error)

    def look_later(protocol: WebSocket, *before: Any) -> None:
        later = protocol.loop.call_later(LOOK_SECONDS, look, protocol, *before)
        vars(protocol)[LOOK] = later

    def look(protocol: WebSocket, message: object, late: int, stuck: int) -> None:
        frames = protocol.frames  # another list for each message
        is_half = bool(frames or protocol.conn.reader.buffer)
        # While the app has yet to take the message before, uvicorn reads nothing.
        is_late = is_half and frames is message and not protocol.read_paused
        late = late + 1 if is_late else 0
        # Until the browser has read most of what waits, only pings are added.
        has_to_read = protocol.transport.is_closing() or not protocol.writable.is_set()
        unread = protocol.transport.get_write_buffer_size() if has_to_read else 0
        stuck = stuck + 1 if unread >= vars(protocol).get(UNREAD, 0) > 0 else 0
        vars(protocol)[UNREAD] = unread
        if late >= MOST_LOOKS_AT_A_MESSAGE or stuck >= MOST_LOOKS_UNREAD:
            return protocol.transport.abort()
        look_later(protocol, frames, late, stuck)

    def resume_writing(protocol: WebSocket) -> None:
        resume(protocol)
        vars(protocol)[UNREAD] = 0

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
    WebSocket.resume_writing = resume_writing  # type: ignore[assignment, method-assign]
    WebSocket.handle_cont = join  # type: ignore[assignment, method-assign]


def drop_unread_pongs() -> None:
    """Answer no pings of a browser that doesn't read the answers.

    uvicorn lets any number of them wait.
    """

    def handle_ping(protocol: WebSocket) -> None:
        pongs = b"".join(protocol.conn.data_to_send())
        if protocol.writable.is_set():
            protocol.transport.write(pongs)

    WebSocket.handle_ping = handle_ping  # type: ignore[assignment, method-assign]


def weigh_connections(tabs: Tabs) -> None:
    """Weigh what the connections of tabs hold: see Tabs.

    A message weighs from its first bytes on: it takes memory before it is whole, and
    while it waits for the app. uvicorn takes all messages from what it reads at once,
    which may be 40,000 tiny ones.
    """
    begin, receive = WebSocket.handle_connect, WebSocket.data_received
    hear, end = WebSocket.send_receive_event_to_app, WebSocket.connection_lost
    write = WebSocket.send

    def handle_connect(protocol: WebSocket, request: Any) -> None:
        begin(protocol, request)
        if "scope" in vars(protocol):  # unless the request was refused
            tab = Tab(partial(abort, protocol), partial(unread, protocol))
            vars(protocol)[TAB] = protocol.scope["state"][TAB] = tab
            tabs.enter(tab)

    def data_received(protocol: WebSocket, data: bytes) -> None:
        receive(protocol, data)
        if tab := vars(protocol).get(TAB):
            waiting = protocol.queue.qsize() * QUEUED_BYTES
            part = size(protocol) + len(protocol.conn.reader.buffer)
            tab.hold(max(len(data) + waiting, PER_BYTE * part))
            tabs.grow(PER_BYTE * len(data) + waiting)

    def send_receive_event_to_app(protocol: WebSocket) -> None:
        if tab := vars(protocol).get(TAB):
            tab.hold(PER_BYTE * size(protocol))
        hear(protocol)

    def connection_lost(protocol: WebSocket, error: Exception | None) -> None:
        end(protocol, error)
        if tab := vars(protocol).pop(TAB, None):
            tabs.leave(tab)

    async def send(protocol: WebSocket, message: Any) -> None:
        vars(protocol)[GOES] = len(message.get("bytes") or b"")
        await write(protocol, message)

    def size(protocol: WebSocket) -> int:
        return sum(map(len, protocol.frames))

    def unread(protocol: WebSocket) -> int:
        is_stuck = not protocol.writable.is_set()
        going = vars(protocol).get(GOES, 0) if is_stuck else 0
        return going + protocol.transport.get_write_buffer_size()

    WebSocket.handle_connect = handle_connect  # type: ignore[assignment, method-assign]
    WebSocket.data_received = data_received  # type: ignore[assignment, method-assign]
    WebSocket.send_receive_event_to_app = send_receive_event_to_app  # type: ignore[assignment, method-assign]
    WebSocket.connection_lost = connection_lost  # type: ignore[assignment, method-assign]
    WebSocket.send = send  # type: ignore[assignment, method-assign]


def abort(protocol: WebSocket) -> None:
    """End a connection, and forget what the app has yet to take of it."""
    while not protocol.queue.empty():
        protocol.queue.get_nowait()
    protocol.transport.abort()


PATCHES = (
    end_in_time,
    send_at_once,
    refuse_long_headers,
    refuse_tiny_chunks,
    hang_up_on_many_frames,
    hang_up_on_half_requests,
    hang_up_on_half_messages,
    drop_unread_pongs,
)
