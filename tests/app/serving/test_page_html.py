from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from streamlit.file_util import get_static_dir
from streamlit.web.server.starlette.starlette_static_routes import (
    create_streamlit_static_handler,
)

from core.jobs.cluster import ROOT
from core.serving import page_html
from tests.app import event_loop
from tests.app.ui.client import Client

TITLES = sorted(file.stem.partition("_")[2] for file in ROOT.glob("pages/*.py"))
OURS = Client(Starlette(routes=page_html.routes(TITLES)))


def by_streamlit(path: str) -> Response:
    handler = create_streamlit_static_handler(get_static_dir(), None)
    request = {"type": "http", "method": "GET", "path": f"/{path}", "headers": []}
    return event_loop.run(handler.get_response(path or ".", request))


@pytest.mark.parametrize("page", ["", *TITLES])
def test_a_page_address_is_answered_as_by_streamlit(page):
    ours, theirs = OURS.get(f"/{page}"), by_streamlit(page)
    assert ours.status == theirs.status_code == 200
    head, body = Path(theirs.path).read_text("utf-8").split("</head>")
    assert ours.body.startswith(head)
    assert ours.body.endswith(body)
    for name in ("content-type", "cache-control"):
        assert ours.headers[name] == theirs.headers[name]
