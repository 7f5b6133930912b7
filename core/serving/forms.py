"""Forms that pages post, since their answer can set a cookie, and a websocket can't.

The next page shows a sentence about what happened.
"""

import time
from collections import deque
from typing import Literal, NamedTuple
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

LONGEST = 1000  # bytes of a form; a code has 23
MOST_SENTENCES = 1000  # kept for visitors whose page hasn't come
OTHER_SITE = "This form was not sent from a page of this app. Open the app instead."


class Sentence(NamedTuple):
    kind: Literal["success", "warning"]
    text: str


_sentences: dict[str, Sentence] = {}  # by visitor


def say(to: str, sentence: Sentence) -> None:
    """Keep a sentence for the visitor's next page."""
    _sentences[to] = sentence
    if len(_sentences) > MOST_SENTENCES:
        del _sentences[next(iter(_sentences))]


def said(to: str) -> Sentence | None:
    """Take a visitor's sentence, which is shown only once."""
    return _sentences.pop(to, None)


class Failures:
    """Counts wrong passwords or codes, and slows down the tries that follow.

    Nobody is refused, and the address that sends the wrong ones waits longest.
    """

    LAST_SECONDS = 600.0
    OWN_SECONDS, MOST_OWN_SECONDS = 0.1, 5.0  # for each wrong one from the same address
    ALL_SECONDS, MOST_ALL_SECONDS = 0.001, 1.0  # for each wrong one from anywhere
    MOST = 10_000  # counted

    def __init__(self) -> None:
        self._recent: deque[tuple[float, str]] = deque(maxlen=self.MOST)

    def add(self, address: str) -> None:
        self._recent.append((time.monotonic(), address))

    def delay(self, address: str) -> float:
        oldest = time.monotonic() - self.LAST_SECONDS
        recent = [failure for failure in self._recent if failure[0] >= oldest]
        self._recent = deque(recent, self.MOST)
        own = sum(theirs == address for _, theirs in recent) * self.OWN_SECONDS
        everywhere = len(recent) * self.ALL_SECONDS
        return min(own, self.MOST_OWN_SECONDS) + min(everywhere, self.MOST_ALL_SECONDS)


async def posted(request: Request) -> dict[str, str]:
    """Fields of a form that a page of this app posts; 403 for another site's form.

    Browsers report which site's page sent the form, and a page can't change that.
    """
    host = request.headers.get("host")
    origin = urlsplit(request.headers.get("origin", "")).netloc
    site = request.headers.get("sec-fetch-site")  # a proxy may have changed the host
    if site != "same-origin" and (not origin or origin != host):
        raise HTTPException(403, OTHER_SITE)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST:
            return {}
    fields = parse_qs(body.decode("ascii", "ignore"))
    return {name: values[0] for name, values in fields.items()}


def sender(request: Request) -> str:
    return request.client.host if request.client else ""


def to_page(visitor: str, sentence: Sentence | None, page: str) -> Response:
    if visitor and sentence:
        say(visitor, sentence)
    return RedirectResponse(f"../{page}", 303)
