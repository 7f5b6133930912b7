"""What a browser loads before it connects: the same frame for each page's address.

Streamlit looks for files of these names first, in threads, ten times for each page that
is opened. With many people it spends more on that than on the answers.
"""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from streamlit.file_util import get_static_dir

from core.ui.course import HOME, PAGES

FRAME = Path(get_static_dir(), "index.html").read_text("utf-8")


async def frame(_: Request) -> Response:
    """Streamlit's own page, to be asked for anew each time: it names newer files."""
    return HTMLResponse(FRAME, headers={"Cache-Control": "no-cache"})


async def nothing(_: Request) -> Response:
    """Browsers ask below a page's address whether the server is there; it is not."""
    return Response("Not Found", 404)


ROUTES = [
    Route("/", frame),
    *(Route(f"/{page.title}", frame) for page in PAGES if page != HOME),
    *(Route(f"/{page.title}/_stcore/{{_:path}}", nothing) for page in PAGES),
]
