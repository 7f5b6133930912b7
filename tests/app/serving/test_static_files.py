import gzip
from collections.abc import Mapping

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit.file_util import get_static_dir
from streamlit.web.server.starlette.starlette_static_routes import (
    create_streamlit_static_handler,
)

from core.serving import static_files
from tests.app import event_loop

PATHS = {path.rpartition(".")[2]: path for path in static_files.FILES}
OTHERS = Route("/{path:path}", lambda _: PlainTextResponse("Streamlit's"))
APP = Starlette(routes=[OTHERS], middleware=[Middleware(static_files.CompressedFiles)])


def answer(path: str, accepts: str = "br, gzip") -> tuple[Mapping[str, str], bytes]:
    """The headers and the body of what the app answers."""
    request = {
        **{"type": "http", "method": "GET", "path": path, "query_string": b""},
        "headers": [(b"accept-encoding", accepts.encode())],
    }
    sent: list[dict] = []

    async def send(message: dict) -> None:
        sent.append(message)

    event_loop.run(APP(request, None, send))
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return headers, b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
@pytest.mark.parametrize("mount", ["", "/user/ada/proxy/8501"])
def test_a_file_is_answered_as_by_streamlit_but_compressed(path, mount):
    handler = create_streamlit_static_handler(get_static_dir(), None)
    request = {"type": "http", "method": "GET", "path": path, "headers": []}
    theirs = event_loop.run(handler.get_response(path.lstrip("/"), request)).headers
    ours, body = answer(f"{mount}{path}")
    assert gzip.decompress(body) == static_files.FILES[path].read_bytes()
    assert ours["content-encoding"] == "gzip"
    assert ours["vary"] == "Accept-Encoding"
    for name in ("content-type", "cache-control"):
        assert ours[name] == theirs[name]


@pytest.mark.parametrize(
    ("path", "accepts"),
    [
        (PATHS["js"], "br"),
        (PATHS["js"], ""),
        ("/static/js/none.js", "gzip"),
        ("/static/js/../index.html", "gzip"),
        ("/Train", "gzip"),
        ("/", "gzip"),
    ],
)
def test_streamlit_answers_all_others(path, accepts):
    assert answer(path, accepts)[1] == b"Streamlit's"
