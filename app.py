"""The server: what starts and ends with it. What a visitor sees first is home.py.

`streamlit run app.py` finds `app` by reading this file.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import streamlit as st
from starlette.middleware import Middleware

from core import log
from core.errors import ExplainedError
from core.jobs import certificates
from core.jobs.engine import in_background
from core.ui import page_routes, probe_routes, visitor_routes
from core.ui.classroom import ends
from core.ui.classroom.teacher import sign_in
from core.ui.metrics import Looks
from core.ui.server import engine, served, store
from core.ui.uploads import UploadLimit
from core.ui.visitor import VisitorCookie, signer

try:
    certificates.security(os.environ.get("DASK_SCHEDULER_ADDRESS"))
except ExplainedError as problem:
    sys.exit(str(problem))


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """The workers start before the first visitor comes, and end with the server."""
    log.set_up(served)
    signer()
    store()
    engine()  # its processes start while this one goes on
    # Now, since what they import asks for Streamlit's runtime.
    from core.ui import garbage, streamlit_mends, warm

    streamlit_mends.mend()
    warm.load()
    log.set_up(served)  # of what was imported since, too
    in_background(warm.up)
    watching = [asyncio.create_task(each) for each in (ends.watch(), garbage.watch())]
    yield
    for each in watching:
        each.cancel()
    engine().close()
    store().close()


app = st.App(
    "home.py",
    lifespan=lifespan,
    routes=[
        *probe_routes.ROUTES,
        *page_routes.ROUTES,
        *visitor_routes.ROUTES,
        *sign_in.ROUTES,
    ],
    middleware=[Middleware(Looks), Middleware(UploadLimit), Middleware(VisitorCookie)],
)
