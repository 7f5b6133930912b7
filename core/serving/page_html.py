"""The HTML that is the same at each page's address; page.css and page.js add to it."""

from collections.abc import Iterable
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

SIDEBAR = 220  # width in pixels
SCRIPT = Path(__file__).with_name("page.js")  # browsers run it before they draw a page
STATIC = Path(st.__file__).with_name("static")  # Streamlit's frontend
PARTS = (  # JavaScript files of Streamlit's frontend that many pages need
    *("ArrowVegaLiteChart", "BidiComponent", "Button", "ButtonGroup", "Checkbox"),
    *("DownloadButton", "ImageList", "Metric", "NumberInput", "PageLink", "Progress"),
    *("Radio", "Selectbox", "Slider", "StreamlitSyntaxHighlighter", "TextInput"),
)


def routes(titles: Iterable[str]) -> list[Route]:
    """Routes for the pages with these titles, Home, and page.js."""
    html = steady(STATIC)

    async def frame(_: Request) -> Response:
        # Browsers have to ask each time: a new Streamlit names scripts differently.
        return HTMLResponse(html, headers={"Cache-Control": "no-cache"})

    async def script(_: Request) -> Response:
        # A file of its own, since the proxy's rules forbid inline scripts.
        return FileResponse(SCRIPT, headers={"Cache-Control": "no-cache"})

    paths = ["/", *(f"/{title}" for title in titles)]
    return [*(Route(path, frame) for path in paths), Route(f"/{SCRIPT.name}", script)]


def steady(folder: Path) -> str:
    """Streamlit's index.html, changed so that pages don't move as they load.

    Streamlit loads an element's code when the first element of its kind comes. Until
    the code is there, the element is 20 pixels high. Here, the code is loaded with the
    page, and the sidebar has its place at once. `folder` is Streamlit's static folder.
    """
    html = (folder / "index.html").read_text("utf-8")
    scripts = [*(folder / "static/js").glob("*.js")]
    loads = (
        f'<link rel="modulepreload" crossorigin href="./static/js/{script.name}">'
        for script in scripts
        if script.name.partition(".")[0] in PARTS
    )
    css = SCRIPT.with_suffix(".css").read_text("utf-8")
    css = css.replace("{sidebar}", f"{SIDEBAR}px")
    script = f'<script src="./{SCRIPT.name}"></script>'
    head = f"{''.join(loads)}<style>{css}</style>{script}"
    return html.replace("</head>", f"{head}</head>")
