"""A limit on all uploads in memory together; Streamlit only limits single files."""

import re
from collections import Counter
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving import starlette_internals, streamlit_internals
from core.serving.request_source import network

SESSION_BYTES = 45_000_000  # the largest checkpoint, picture, and photo together
ALL_BYTES = 450_000_000  # what all sessions may hold together
ADDRESS_BYTES = 150_000_000  # that may be arriving from one network address
OF_A_FILE = 1_000  # bytes of the objects that hold a file, about
SESSION_FILES = 20  # pages show three
LOOK_BYTES = 65_536  # that arrive between two looks at whether there is room
TOO_MUCH = "The server is receiving too much data at once. Try again in a moment."
# The type that browsers send. Other forms, of many tiny fields, take the event loop
# long, and so do some character sets: Python reads 1 MB of Punycode in 30 s.
FILE = re.compile(r"multipart/form-data; ?boundary=[\w.'()+,/:=?\"-]{1,100}", re.ASCII)


class UploadLimit:
    """ASGI middleware: drops old files to make room for new ones, or refuses an upload.

    If the uploading session is above SESSION_BYTES or SESSION_FILES, it loses its
    oldest file. If all sessions together are above ALL_BYTES, the session with the most
    bytes loses its oldest file. Files that are still arriving count byte by byte, since
    their announced length may be false. An arriving file can't be dropped: if no other
    file is left to drop, or if more is arriving from the same address than
    ADDRESS_BYTES, the request ends with status 413. A request without a form of files,
    which browsers don't send, ends with status 415.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.arriving: Counter[str] = Counter()  # bytes, keyed by session
        self.arriving_from: Counter[str] = Counter()  # keyed by network address

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
        session, arrived, due = parts[-2], 0, 0
        address = network(scope["client"][0]) if scope.get("client") else ""

        async def counted() -> Message:
            nonlocal arrived, due
            message = await receive()
            arrived += (size := len(message.get("body", b"")))
            self.arriving[session] += size
            self.arriving_from[address] += size
            if self.arriving_from[address] > ADDRESS_BYTES:
                raise HTTPException(413, TOO_MUCH)
            # A look takes longer the more files there are, and a byte may come alone.
            if arrived >= due or not message.get("more_body"):
                due = arrived + LOOK_BYTES
                self._make_room(session)
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.arriving[session] -= arrived
            self.arriving_from[address] -= arrived
            self.arriving += Counter()  # drops sessions at 0
            self.arriving_from += Counter()

    def _make_room(self, session: str) -> None:
        files = streamlit_internals.uploads()
        while True:
            stored = {
                key: sum(map(size_of, list(uploads.values())))
                for key, uploads in list(files.file_storage.items())
            }
            own = stored.get(session, 0) + self.arriving[session]
            count = len(files.file_storage.get(session, ()))
            if own > SESSION_BYTES or count > SESSION_FILES:
                fullest = session
            elif sum(stored.values()) + self.arriving.total() > ALL_BYTES:
                fullest = max(stored, key=stored.__getitem__, default=session)
            else:
                return
            if not stored.get(fullest):
                raise HTTPException(413, TOO_MUCH)
            oldest = next(iter(files.file_storage[fullest]))
            files.remove_file(fullest, oldest)


def size_of(file: Any) -> int:
    """Bytes in memory: the content, and what an empty file takes, too."""
    texts = file.file_id, file.name, file.type
    return len(file.data) + sum(map(len, texts)) + OF_A_FILE
