"""The work for visitors' own GPUs, some megabytes, at addresses that browsers fetch.

In a message to a tab, it would stay in memory for each tab that doesn't take it. Here,
all visitors share what doesn't depend on their weights, and slow browsers get it piece
by piece.
"""

import json
from collections.abc import AsyncIterator, Collection

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from core.jobs.job import Stored
from core.store.cache import Cache
from core.ui.server import FORGET, ask

WORK = "your-gpu"  # a route, relative to a page's address
SECONDS = 60.0  # time limit for an answer of the workers
MOST = 16  # works in memory: of each task 2 to 8 MB, and of each model 1 MB
PIECE = 65_536  # bytes that are sent at once


def _prepared(name: str) -> tuple[bytes, list[float]]:
    """The work of this name as JSON, and the losses of its training.

    The name is a task's, or "task/run", for what is different with the run's weights.
    """
    task, _, run = name.partition("/")
    if run:
        address = "core.lessons.compare.your_gpu:with_weights"
        work = ask(address, Stored(run), task, seconds=SECONDS)
    else:
        work = ask("core.lessons.compare.your_gpu:prepare", task, seconds=SECONDS)
    return json.dumps(work).encode(), work.get("losses", [])


prepared = Cache(_prepared, MOST)


def _forget(_: str, models: Collection[str]) -> None:
    prepared.drop(lambda names, _: names[0].partition("/")[2] in models)


FORGET.append(_forget)


async def send(request: Request) -> Response:
    """Send a work that a page has prepared. Nothing is prepared for a mere request."""
    work = prepared.kept(request.path_params["name"])
    if work is None:
        return Response(status_code=404)
    headers = {"Cache-Control": "no-store"}
    return StreamingResponse(_pieces(work[0]), 200, headers, "application/json")


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE]


ROUTES = [Route(f"/{WORK}/{{name:path}}", send)]
