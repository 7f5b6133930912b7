"""What watches the app asks: /livez, /healthz and /metrics.

None of them can hold the server up. The first says only that it serves. The others ask
in threads of their own, which are few, and wait for a moment. A proxy keeps them from
the rest of the world.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from core.jobs.roster import first_gpu, host_of
from core.machine.results import DeviceLoad
from core.ui.metrics import REGISTRY
from core.ui.server import engine, store

T = TypeVar("T")

ANSWER_SECONDS = 2.0  # for the database, and for the lab
MOST_SECONDS = 5.0  # for all of it
PARTS = ("database", "scheduler", "training worker")
NOT_KEPT = "The database does not answer."
NO_SCHEDULER = "The scheduler does not answer. The app looks for it until it does."
NO_WORKER = "No training worker is connected. Jobs wait until there is one."
HANGS = "The app has given no answer in time."

_threads = ThreadPoolExecutor(2, "probe")


async def in_time(question: Callable[[], T]) -> T:
    """The answer; TimeoutError where none comes in time."""
    answer = asyncio.get_running_loop().run_in_executor(_threads, question)
    return await asyncio.wait_for(answer, MOST_SECONDS)


def missing() -> dict[str, str]:
    """Each part that does not answer, and what is known of that, in a sentence."""
    found = {}
    if not store().is_there(ANSWER_SECONDS):
        found["database"] = store().problem or NOT_KEPT
    lanes = engine().lanes()
    if lanes is None:
        found["scheduler"] = engine().problem or NO_SCHEDULER
    if not (lanes and lanes["train"]):
        found["training worker"] = NO_WORKER
    return found


async def livez(_: Request) -> Response:
    return PlainTextResponse("The app serves.\n")


async def healthz(_: Request) -> Response:
    """200 while all parts answer, else 503 with those that do not."""
    try:
        found = await in_time(missing)
    except TimeoutError:
        found = {"app": HANGS}
    status, code = ("missing", 503) if found else ("ok", 200)
    return JSONResponse({"status": status, "missing": found}, code)


async def metrics(_: Request) -> Response:
    """What was counted, and what there is right now, as Prometheus reads it."""
    try:
        text = await in_time(lambda: generate_latest(REGISTRY))
    except TimeoutError:
        return PlainTextResponse(f"{HANGS}\n", 503)
    return Response(text, media_type=CONTENT_TYPE_LATEST)


class Now(Collector):
    """What there is at the moment that Prometheus asks."""

    def describe(self) -> list[Metric]:
        """Nothing is asked while this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        gone = missing()
        up = _gauge("up", "Whether a part answers", "part")
        for part in PARTS:
            up.add_metric([part], part not in gone)
        yield up
        going_on = Counter((j.address, j.status) for j in engine().going_on())
        jobs = _gauge("jobs", "Jobs that wait or run", "kind", "status")
        for labels, number in going_on.items():
            jobs.add_metric(labels, number)
        yield jobs
        lanes = engine().lanes() or Counter()
        workers = _gauge("workers", "Jobs that workers take at once", "lane")
        for lane in ("train", "lab"):
            workers.add_metric([lane], lanes[lane])
        yield workers
        yield from _devices()


def _devices() -> Iterator[Metric]:
    """Memory and use of the devices of all machines; nothing of one that is silent."""
    of = "machine", "device"
    used = _gauge("device_memory_used_bytes", "Of a device's memory", *of)
    total = _gauge("device_memory_total_bytes", "A device's memory", *of)
    busy = _gauge("device_busy_ratio", "Of the last moment, with a kernel", *of)
    for labels, each in _loads().items():
        if each.used_bytes is not None and each.total_bytes is not None:
            used.add_metric(labels, each.used_bytes)
            total.add_metric(labels, each.total_bytes)
        if each.busy_percent is not None:
            busy.add_metric(labels, each.busy_percent / 100)
    yield from (used, total, busy)


def _loads() -> dict[tuple[str, str], DeviceLoad]:
    """By machine and device, as a process would call it that sees all of them."""
    told = engine().hosts.answers("core.machine.hardware:now", ANSWER_SECONDS)
    return {
        (host_of(name), each.device.replace(":0", f":{first_gpu(name)}")): each
        for name, loads in told.items()
        for each in loads
    }


def _gauge(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"to_device_{name}", about, labels=labels)


REGISTRY.register(Now())
ROUTES = [
    Route("/livez", livez),
    Route("/healthz", healthz),
    Route("/metrics", metrics),
]
