"""The server: its start and end, its routes, and its middleware.

home.py draws Home, and pages/ has the other pages. Start the server with `streamlit run
app.py`, which looks for `app` in this file, or with `python app.py`, which runs the
same command.
"""

import sys

if __name__ == "__main__":
    # st.App.run() would ignore Streamlit's settings in environment variables.
    from streamlit.web import cli

    cli.main(["run", *sys.argv])

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from core import log
from core.classroom import sign_in_page as sign_in
from core.jobs import cluster
from core.jobs.admission import Limits
from core.jobs.engine import in_background
from core.lessons.compare import your_gpu_work_page
from core.runs import delete_my_data_page, my_data_page
from core.serving import descriptors, monitoring, page_html, streamlit_internals
from core.serving.embedding import Embedding
from core.serving.message_pace import MessagePace
from core.serving.monitoring import PrivatePaths, ResponseTimes
from core.serving.static_files import CompressedFiles
from core.serving.upload_limit import UploadLimit
from core.serving.visitor_cookie import VisitorCookie, signer
from core.ui import image_wall
from core.ui.course import PAGES
from core.ui.server import engine, room, store, visitor_drawn
from to_device.errors import ExplainedError

try:
    cluster.security(os.environ.get("DASK_SCHEDULER_ADDRESS"))
    Limits.from_environment()
    signer()
except ExplainedError as problem:
    sys.exit(str(problem))


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Start the workers before the first visitor comes; end them with the server."""
    log.set_up(visitor_drawn)
    descriptors.raise_limit()
    store()
    engine()  # starts the worker processes, and does not wait for them
    # These modules create Streamlit caches, for which the runtime has to exist already.
    from core import startup
    from core.serving import full_database, garbage

    streamlit_internals.apply()
    startup.load()
    log.set_up(visitor_drawn)  # again, for loggers of the modules imported since
    sign_in.warn_of_password()
    in_background(startup.warm_up)
    watching = [
        asyncio.create_task(watch)
        for watch in (
            room().watch_expiry(engine().forget),
            garbage.watch(),
            full_database.watch(store(), engine().admission.limits.max_database_mb),
        )
    ]
    yield
    for task in watching:
        task.cancel()
    engine().close()
    store().close()


routes = [
    *monitoring.routes(engine, store),
    *page_html.routes(page.title for page in PAGES),
    *my_data_page.ROUTES,
    *delete_my_data_page.ROUTES,
    *image_wall.ROUTES,
    *your_gpu_work_page.ROUTES,
    *sign_in.ROUTES,
]
if mount := st.get_option("server.baseUrlPath").strip("/"):
    # Browsers add the mount to each path. Health checks don't: they ask for /livez.
    routes += [
        Route(f"/{mount}{route.path}", route.endpoint, methods=route.methods)
        for route in routes
    ]

# If a request names a host that isn't allowed, Streamlit refuses only websockets.
# TrustedHostMiddleware refuses pages and forms, too.
hosts = list(st.get_option("server.allowedHosts")) or ["*"]

app = st.App(
    "home.py",
    lifespan=lifespan,
    routes=routes,
    middleware=[
        Middleware(MessagePace),
        Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        Middleware(Embedding),
        Middleware(PrivatePaths),
        Middleware(CompressedFiles),
        Middleware(ResponseTimes),
        Middleware(UploadLimit),
        Middleware(VisitorCookie),
    ],
)
