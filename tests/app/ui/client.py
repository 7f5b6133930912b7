"""A browser without windows: requests to an ASGI app, and the cookies it sets."""

import asyncio
from dataclasses import dataclass, field
from http.cookies import Morsel, SimpleCookie
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.types import ASGIApp

from tests.app import event_loop


@dataclass
class Client:
    """It keeps cookies until they are replaced."""

    app: ASGIApp
    address: str = "10.0.0.1"
    scheme: str = "http"
    host: str = "course"
    cookies: dict[str, str] = field(default_factory=dict)
    cookie: Morsel | None = None  # the cookie of the newest answer, with its flags
    status: int = 0
    headers: Headers = field(default_factory=Headers)
    body: str = ""

    def get(self, path: str = "/", **headers: str) -> "Client":
        return self._send("GET", path, b"", headers)

    def post(self, path: str, origin: str = "http://course", **form: str) -> "Client":
        """Send a form from a page of that origin."""
        return self._send("POST", path, urlencode(form).encode(), {"origin": origin})

    def _send(self, method: str, path: str, body: bytes, headers: dict) -> "Client":
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"host": self.host, "cookie": cookies, **headers}
        scope = {
            **{"type": "http", "method": method, "path": path, "scheme": self.scheme},
            **{"query_string": b"", "client": (self.address, 1), "root_path": ""},
            "headers": [(k.encode(), v.encode("latin-1")) for k, v in sent.items()],
        }

        requests = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict:
            if not requests:
                await asyncio.Event().wait()  # the browser stays until it has it all
            return requests.pop()

        async def send(message: dict) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = Headers(raw=message["headers"])
            self.body += message.get("body", b"").decode()

        self.body = ""
        event_loop.run(self.app(scope, receive, send))
        new = SimpleCookie(self.headers.get("set-cookie", ""))
        self.cookie = next(iter(new.values()), None)
        self.cookies |= {name: morsel.value for name, morsel in new.items()}
        return self
