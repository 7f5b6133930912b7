"""The scripts and styles of Streamlit's frontend, compressed once for all browsers.

Streamlit sends them as they are, since it would compress them for each browser again. A
file's name changes with its content, so browsers keep it for a year and never ask for
it again.
"""

import gzip
from functools import cache
from mimetypes import guess_type
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from core.serving.page_html import STATIC

FILES = {  # by the end of its address
    f"/static/{kind}/{file.name}": file
    for kind in ("js", "css")
    for file in (STATIC / "static" / kind).glob(f"*.{kind}")
}
HEADERS = {
    "Cache-Control": "public, immutable, max-age=31536000",
    "Content-Encoding": "gzip",
    "Vary": "Accept-Encoding",
}


def compress_all() -> None:
    """Compress all files, so that no visitor waits for it."""
    for file in FILES.values():
        compressed(file)


@cache
def compressed(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), mtime=0)


class CompressedFiles:
    """ASGI middleware: answers with these files to browsers that take them compressed.

    A route can't do this: Streamlit reserves the addresses.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        file = None
        if scope["type"] == "http" and scope["method"] == "GET":
            # The app may have a path of its own before these.
            end = "/".join(["", *scope["path"].split("/")[-3:]])
            if "gzip" in Headers(scope=scope).get("Accept-Encoding", ""):
                file = FILES.get(end)
        if file is None:
            return await self.app(scope, receive, send)
        body = await run_in_threadpool(compressed, file)
        response = Response(body, headers=HEADERS, media_type=guess_type(file)[0])
        await response(scope, receive, send)
