"""Which other pages may show the app inside a frame of theirs.

A page of any site could lay the app, unseen, over something that people click, and so
have them run code on their own machine. Only where no proxy stands in front does this
code run unconfined (see execution_policy.py). A proxy decides for itself, since the app
is meant to be inside huggingface.co's pages, for example.
"""

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.serving.request_source import is_forwarded

# The app's own pages, and the editor that a dev container opens: no site's page has an
# address that begins with its schemes.
FRAMERS = "frame-ancestors 'self' vscode-file: vscode-webview:"


class Embedding:
    """ASGI middleware: answers that no proxy hands on name who may frame them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_forwarded(Headers(scope=scope)):
            return await self.app(scope, receive, send)

        async def with_framers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = FRAMERS
            await send(message)

        await self.app(scope, receive, with_framers)
