"""How much of what visitors upload the server holds at once.

Streamlit keeps each file in memory until its session ends, and limits how large a file
may be, but not how many there are.
"""

from collections import Counter

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

SESSION_BYTES = 45_000_000  # the largest checkpoint, the largest picture, a photo
ALL_BYTES = 450_000_000
TOO_MUCH = "Too much is being uploaded at once. Try again in a moment."


class UploadLimit:
    """ASGI middleware: for a new file the oldest ones go, and a flood is refused.

    The oldest of the same session where that would hold too much, else of the session
    that holds most: whoever uploads one file is not crowded out by those with many.
    Files that are still on their way are counted too, byte by byte as they come, since
    nobody has to be honest about their length; they alone can't be dropped, and where
    they are too much the request ends with status 413.
    """

    def __init__(
        self,
        app: ASGIApp,
        session_bytes: int = SESSION_BYTES,
        all_bytes: int = ALL_BYTES,
    ) -> None:
        self.app = app
        self.session_bytes, self.all_bytes = session_bytes, all_bytes
        self.arriving: Counter[str] = Counter()  # bytes, by session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = _session(scope)
        if session is None:
            return await self.app(scope, receive, send)
        arrived = 0

        async def counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += (size := len(message.get("body", b"")))
            self.arriving[session] += size
            self._make_room(session)
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            self.arriving[session] -= arrived
            self.arriving += Counter()  # forgets those that are at 0

    def _make_room(self, session: str) -> None:
        """Drop what is too much; HTTPException where there is nothing to drop."""
        files = _files()
        while True:
            held = {
                key: sum(len(file.data) for file in list(each.values()))
                for key, each in list(files.file_storage.items())
            }
            if held.get(session, 0) + self.arriving[session] > self.session_bytes:
                fullest = session
            elif sum(held.values()) + self.arriving.total() > self.all_bytes:
                fullest = max(held, key=held.__getitem__, default=session)
            else:
                return
            if not held.get(fullest):
                raise HTTPException(413, TOO_MUCH)
            oldest = next(iter(files.file_storage[fullest]))
            files.remove_file(fullest, oldest)


def _session(scope: Scope) -> str | None:
    """Whose file a request brings: PUT …/_stcore/upload_file/<session>/<file>."""
    if scope["type"] != "http" or scope["method"] != "PUT":
        return None
    parts = scope["path"].split("/")
    return parts[-2] if parts[-3:-2] == ["upload_file"] else None


def _files() -> MemoryUploadedFileManager:
    files = runtime.get_instance().uploaded_file_mgr
    assert isinstance(files, MemoryUploadedFileManager)
    return files
