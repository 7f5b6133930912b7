"""What a browser loads before it connects: as Streamlit would answer, but at once."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from streamlit.file_util import get_static_dir
from streamlit.web.server.starlette.starlette_static_routes import (
    create_streamlit_static_handler,
)

from core.jobs.cluster import ROOT
from core.ui import page_routes
from tests import event_loop
from tests.ui.client import Client

PAGES = sorted(each.stem.partition("_")[2] for each in ROOT.glob("pages/*.py"))
OURS = Client(Starlette(routes=page_routes.ROUTES))


def streamlits(path: str) -> Response:
    """What its own handler answers."""
    handler = create_streamlit_static_handler(get_static_dir(), None)
    asked = {"type": "http", "method": "GET", "path": f"/{path}", "headers": []}
    return event_loop.run(handler.get_response(path or ".", asked))


@pytest.mark.parametrize("page", ["", *PAGES])
def test_pages_are_answered_as_streamlit_does(page):
    ours, theirs = OURS.get(f"/{page}"), streamlits(page)
    assert ours.status == theirs.status_code == 200
    assert ours.body == Path(theirs.path).read_text("utf-8")
    for name in ("content-type", "cache-control"):
        assert ours.headers[name] == theirs.headers[name]


@pytest.mark.parametrize("path", ["health", "host-config"])
def test_below_a_page_there_is_no_server(path):
    for page in PAGES:
        assert OURS.get(f"/{page}/_stcore/{path}").status == 404
        with pytest.raises(HTTPException) as told:
            streamlits(f"{page}/_stcore/{path}")
        assert told.value.status_code == 404
