"""Limits on all uploads together; Streamlit only limits single files."""

import asyncio
import re
import time
from collections import Counter, defaultdict
from contextlib import suppress
from heapq import heapify, heappush, heapreplace
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving import starlette_internals, streamlit_internals
from core.serving.request_source import network

SESSION_BYTES = 45_000_000  # the largest checkpoint, picture, and photo together
STORED_BYTES = 250_000_000  # what all sessions may hold together
# What may be arriving at once: a class's files, and those of others. Starlette keeps
# them in the folder for temporary files, which may be in memory, too.
ARRIVING_BYTES = 200_000_000
OF_A_FILE = 1_000  # bytes of the objects that hold a file, about
SESSION_FILES = 6  # pages show three
LOOK_BYTES = 65_536  # that arrive between two looks at whether there is room
SLOWEST = 50_000  # bytes per second of a browser that makes progress
HALF_LIFE = 60.0  # seconds after which half of what was broken off counts
TOO_MUCH = "The server is receiving too much data at once. Try again in a moment."
# The type that browsers send. Other forms, of many tiny fields, take the event loop
# long, and so do some character sets: Python reads 1 MB of Punycode in 30 s.
FILE = re.compile(r"multipart/form-data; ?boundary=[\w.'()+,/:=?\"-]{1,100}", re.ASCII)


class Upload:
    """A file that is arriving, or that is whole and about to be stored."""

    def __init__(self, session: str, address: str) -> None:
        self.session, self.address = session, address
        self.size, self.is_whole, self._has_to_end = 0, False, False
        self._began = time.monotonic()
        self._waiting: asyncio.Timeout | None = None

    def weight(self) -> float:
        """How much room it takes: one that stands still gets heavy.

        The time that a slow network needs for so many bytes doesn't count.
        """
        late = time.monotonic() - self._began - self.size / SLOWEST
        return self.size * (1 + max(0.0, late))

    @property
    def is_broken_off(self) -> bool:
        """Whether the browser has ended it before all had come."""
        return not (self.is_whole or self._has_to_end)

    def end(self) -> None:
        """Let `hear` raise HTTPException, also if it waits for the browser."""
        self._has_to_end = True
        if self._waiting:
            self._waiting.reschedule(0)

    def go_on(self) -> None:
        if self._has_to_end:
            raise HTTPException(413, TOO_MUCH)

    async def hear(self, receive: Receive) -> Message:
        """The next message of the browser, which is counted."""
        self.go_on()
        try:
            async with asyncio.timeout(None) as self._waiting:
                message = await receive()
        except TimeoutError:
            raise HTTPException(413, TOO_MUCH) from None
        finally:
            self._waiting = None
        self.size += len(message.get("body", b""))
        is_last = not message.get("more_body")
        self.is_whole = is_last and message["type"] == "http.request"
        return message


class UploadLimit:
    """ASGI middleware: drops old files to make room for new ones, or ends an upload.

    If the uploading session is above SESSION_BYTES or SESSION_FILES, it loses its
    oldest file. If more than ARRIVING_BYTES are arriving, the heaviest upload of the
    heaviest address ends with status 413: see Upload.weight. So a small new one always
    gets in, and a class behind one address doesn't give way to uploads that stand
    still. What an address has broken off weighs for a while, or else somebody could
    begin anew all the time. What is arriving counts byte by byte, since the announced
    length may be false.

    A file takes room from others only once it is whole. If all files are above
    STORED_BYTES then, the address that has most gives way: the session with the most
    bytes there loses its largest file. If it has none but the new one, that is refused.

    A session may end while its file arrives. Then Streamlit stores the file all the
    same, and nobody would remove it.

    A request without a form of files, which browsers don't send, ends with status 415.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.uploads: dict[Upload, None] = {}  # the oldest first
        self.addresses: dict[str, str] = {}  # of sessions with files
        # By address, what was broken off: bytes, and when they counted so much
        self._broken: dict[str, tuple[float, float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        parts = scope.get("path", "").split("/")
        # The path of an upload ends with upload_file/<session>/<file>.
        if scope.get("method") != "PUT" or parts[-3:-2] != ["upload_file"]:
            return await self.app(scope, receive, send)
        kind = Headers(scope=scope).get("content-type", "")
        if not FILE.fullmatch(kind):
            refusal = PlainTextResponse(
                starlette_internals.NO_FILE, 415, {"Connection": "close"}
            )
            return await refusal(scope, receive, send)
        address = network(scope["client"][0]) if scope.get("client") else ""
        upload, due = Upload(parts[-2], address), 0

        async def counted() -> Message:
            nonlocal due
            message = await upload.hear(receive)
            # A look takes longer the more files there are, and a byte may come alone.
            if upload.size >= due or upload.is_whole:
                due = upload.size + LOOK_BYTES
                self._make_room(upload)
            return message

        self.uploads[upload] = None
        try:
            # If the browser breaks an upload off, nobody waits for an answer.
            with suppress(ClientDisconnect):
                await self.app(scope, counted, send)
        finally:
            self.uploads.pop(upload, None)
            if upload.is_broken_off:
                self._note_broken(upload)
            if not streamlit_internals.is_session(upload.session):
                streamlit_internals.uploads().remove_session_files(upload.session)
            self._note_address(upload)

    def _make_room(self, upload: Upload) -> None:
        self._fit_session(upload.session)
        self._fit_arriving()
        upload.go_on()
        if upload.is_whole:
            self._fit_stored()

    def _fit_session(self, session: str) -> None:
        files = streamlit_internals.uploads()
        arriving = sum(one.size for one in self.uploads if one.session == session)
        while True:
            own = dict(files.file_storage.get(session, {}))
            size = arriving + sum(map(size_of, own.values()))
            if size <= SESSION_BYTES and len(own) <= SESSION_FILES:
                return
            if not own:
                raise HTTPException(413, TOO_MUCH)
            files.remove_file(session, next(iter(own)))

    def _fit_arriving(self) -> None:
        arriving = [upload for upload in self.uploads if not upload.is_whole]
        size = sum(upload.size for upload in arriving)
        if size <= ARRIVING_BYTES:
            return
        addresses = {upload.address for upload in arriving}
        weights = {address: self._broken_bytes(address) for address in addresses}
        for upload in arriving:
            weights[upload.address] += upload.weight()
        while size > ARRIVING_BYTES:
            # Among equals, the address whose upload began last gives way.
            newest = [upload.address for upload in reversed(arriving)]
            most = max(newest, key=weights.__getitem__)
            of_most = [upload for upload in arriving if upload.address == most]
            heaviest = max(reversed(of_most), key=Upload.weight)
            arriving.remove(heaviest)
            weights[most] -= heaviest.weight()
            size -= heaviest.size
            del self.uploads[heaviest]
            heaviest.end()

    def _broken_bytes(self, address: str) -> float:
        size, when = self._broken.get(address, (0.0, 0.0))
        return size * 0.5 ** ((time.monotonic() - when) / HALF_LIFE)

    def _note_broken(self, upload: Upload) -> None:
        """Count what an address has broken off; forget addresses where it is little."""
        size, now = self._broken_bytes(upload.address) + upload.size, time.monotonic()
        self._broken[upload.address] = size, now
        self._broken = {
            address: noted
            for address, noted in self._broken.items()
            if self._broken_bytes(address) > LOOK_BYTES
        }

    def _fit_stored(self) -> None:
        files = streamlit_internals.uploads()
        stored = {
            session: {name: size_of(file) for name, file in list(own.items())}
            for session, own in list(files.file_storage.items())
        }
        addresses = Counter[str]()
        # Heaps, which begin with the largest: a search of all for each file that goes
        # would hold the server for a second.
        sessions = defaultdict[str, list[tuple[int, str]]](list)
        for session, own in stored.items():
            size, address = sum(own.values()), self._address(session)
            addresses[address] += size
            heappush(sessions[address], (-size, session))
        for upload in self.uploads:
            addresses[upload.address] += upload.size if upload.is_whole else 0
        fullest = [(-size, address) for address, size in addresses.items()]
        heapify(fullest)
        excess = addresses.total() - STORED_BYTES
        while excess > 0:
            of_address, address = fullest[0]
            of_session, session = next(iter(sessions[address]), (0, ""))
            if not stored.get(session):
                raise HTTPException(413, TOO_MUCH)
            # The largest files first: thousands of small ones would take long.
            name, size = max(stored[session].items(), key=lambda item: item[1])
            files.remove_file(session, name)
            del stored[session][name]
            heapreplace(sessions[address], (of_session + size, session))
            heapreplace(fullest, (of_address + size, address))
            excess -= size

    def _address(self, session: str) -> str:
        return self.addresses.get(session, session)

    def _note_address(self, upload: Upload) -> None:
        """Remember where a session's files come from; forget sessions without."""
        self.addresses[upload.session] = upload.address
        storage = streamlit_internals.uploads().file_storage
        self.addresses = {
            session: address
            for session, address in self.addresses.items()
            if storage.get(session)
        }


def size_of(file: Any) -> int:
    """Bytes in memory: the content, and what an empty file takes, too."""
    texts = file.file_id, file.name, file.type
    return len(file.data) + sum(map(len, texts)) + OF_A_FILE
