"""/livez, /healthz and /metrics, and what is measured for Prometheus.

No probe can hold up the server: probes have two threads of their own and a time limit.
Only programs on the same machine or beside the proxy read what they say; others get a
status. The metrics' labels have few values, and never anybody's name, id, or address.
"""

import asyncio
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client import Counter as EventCounter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core.jobs.engine import Engine
from core.jobs.hosts import first_gpu, host_of
from core.jobs.job import Job
from core.serving.request_source import is_private
from core.serving.streamlit_internals import asks_for_run, run_event
from core.store.store import Store

T = TypeVar("T")

ANSWER_SECONDS = 2.0  # limit for an answer from the database or the workers
PARTS = ("database", "scheduler", "training worker", "lab worker", "server of forks")
MOST_SECONDS = 5.0  # limit for a whole probe
NOT_KEPT = "The database is not responding."
NO_SCHEDULER = "The scheduler is not responding. The app keeps trying to connect."
NO_WORKER = "No training worker is connected. Jobs wait until a worker connects."
NO_LAB = "No lab worker is responding. Pages get no answers until one does."
NO_FORKS = "The process that starts others for files is {}. The app will replace it."
PRIVATE = re.compile(r"/(metrics|_stcore/(metrics|agent|script-health-check))(/|$)")
HANGS = "The app did not respond in time."

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

OURS: dict[str, Any] = {"namespace": "to_device", "registry": REGISTRY}
# The histograms' buckets, in seconds: LONG for jobs, SHORT for pages
LONG = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1200)
SHORT = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
WAITED = Histogram(
    "job_wait_seconds",
    "Time from the click until a worker takes the job",
    ["kind"],
    buckets=LONG,
    **OURS,
)
RAN = Histogram(
    "job_run_seconds",
    "Time from when a worker takes the job until the job ends",
    ["kind", "status"],
    buckets=LONG,
    **OURS,
)
UNANSWERED = EventCounter("unanswered_errors", "Pasted errors with no match", **OURS)
LOOKS = Histogram(
    "look_seconds",
    "Time to answer a browser's request for a page or for part of a page",
    ["of"],
    buckets=SHORT,
    **OURS,
)
SESSIONS = Gauge("sessions", "Connected browser tabs", **OURS)

MOST_WAITING = 1_000  # requests of a tab; some get no answer
MOST_BYTES = 16_384  # larger messages hold pictures or tables, and aren't parsed


def count_job(job: Job) -> None:
    """Add an ended job's times to the histograms; if it never began, it ran for 0 s."""
    began = time.monotonic() if job.began is None else job.began
    WAITED.labels(job.address).observe(began - job.arrived)
    RAN.labels(job.address, job.status).observe(job.seconds or 0.0)


class ResponseTimes:
    """ASGI middleware: counts connected tabs, and measures how long requests wait.

    A run of a page's script answers all requests that came before it began. If the run
    is stopped early for a newer run, the newer run answers them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        # Times of the requests that no run answers yet, and that this run answers
        waiting: deque[float] = deque(maxlen=MOST_WAITING)
        answering: deque[float] = deque(maxlen=MOST_WAITING)

        async def hear() -> Message:
            message = await receive()
            data = message.get("bytes") or b""
            if len(data) < MOST_BYTES and asks_for_run(data):
                waiting.append(time.monotonic())
            return message

        async def say(message: Message) -> None:
            await send(message)
            data = message.get("bytes") or b""
            match run_event(data) if len(data) < MOST_BYTES else None:
                case "begin":
                    answering.extend(waiting)
                    waiting.clear()
                case "page" | "part" as drawn:
                    now = time.monotonic()
                    for request_time in answering:
                        LOOKS.labels(drawn).observe(now - request_time)
                    answering.clear()

        with SESSIONS.track_inprogress():
            await self.app(scope, hear, say)


class PrivatePaths:
    """ASGI middleware: hides PRIVATE, some of which are Streamlit's own routes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self.app
        is_hidden = scope["type"] == "http" and PRIVATE.search(scope["path"])
        if is_hidden and not is_private(HTTPConnection(scope)):
            app = PlainTextResponse("Not Found", 404)
        await app(scope, receive, send)


def routes(engine: Callable[[], Engine], store: Callable[[], Store]) -> list[Route]:
    threads, state = ThreadPoolExecutor(2, "probe"), State(engine, store)

    async def in_time(question: Callable[[], T]) -> T:
        answer = asyncio.get_running_loop().run_in_executor(threads, question)
        return await asyncio.wait_for(answer, MOST_SECONDS)

    async def livez(_: Request) -> Response:
        return PlainTextResponse("The app is running.\n")

    async def healthz(request: Request) -> Response:
        """200 while all parts answer; otherwise, 503 and the parts that don't.

        The reasons may name folders and addresses, so only private requests get them.
        """
        try:
            problems = await in_time(lambda: missing(engine(), store()))
        except TimeoutError:
            problems = {"app": HANGS}
        status, code = ("missing", 503) if problems else ("ok", 200)
        if not is_private(request):
            return PlainTextResponse(f"{status}\n", code)
        return JSONResponse({"status": status, "missing": problems}, code)

    async def metrics(_: Request) -> Response:
        try:
            text = await in_time(
                lambda: generate_latest(REGISTRY) + generate_latest(state)
            )
        except TimeoutError:
            return PlainTextResponse(f"{HANGS}\n", 503)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return [Route(f"/{probe.__name__}", probe) for probe in (livez, healthz, metrics)]


def missing(engine: Engine, store: Store) -> dict[str, str]:
    problems = {}
    if not store.is_there(ANSWER_SECONDS):
        problems["database"] = store.problem or NOT_KEPT
    lanes = engine.lanes()
    if lanes is None:
        problems["scheduler"] = engine.problem or NO_SCHEDULER
    why = engine.problem if lanes is not None else ""  # such as why none can start
    if not (lanes and lanes["train"]):
        problems["training worker"] = why or NO_WORKER
    if not (lanes and lanes["lab"]):
        problems["lab worker"] = why or NO_LAB
    if forks := engine.hosts.forks:
        problems["server of forks"] = NO_FORKS.format(forks)
    return problems


@dataclass
class State(Collector):
    """Gauges whose values are read when Prometheus asks for them."""

    engine: Callable[[], Engine]
    store: Callable[[], Store]

    def collect(self) -> Iterator[Metric]:
        engine = self.engine()
        problems = missing(engine, self.store())
        up = _gauge("up", "Whether each part responds", "part")
        for part in PARTS:
            up.add_metric([part], part not in problems)
        yield up
        jobs = _gauge("jobs", "Waiting and running jobs", "kind", "status")
        going_on = Counter((job.address, job.status) for job in engine.going_on())
        for labels, number in going_on.items():
            jobs.add_metric(labels, number)
        yield jobs
        lanes = engine.lanes() or Counter()
        workers = _gauge("workers", "Jobs that workers can run at once", "lane")
        for lane in ("train", "lab"):
            workers.add_metric([lane], lanes[lane])
        yield workers
        yield from _devices(engine)


def _devices(engine: Engine) -> Iterator[Metric]:
    names = "machine", "device"
    used = _gauge("device_memory_used_bytes", "Memory in use on the device", *names)
    total = _gauge("device_memory_total_bytes", "Total memory of the device", *names)
    busy = _gauge(
        "device_busy_ratio", "Share of recent time spent running kernels", *names
    )
    answers = engine.hosts.answers("core.lessons.device.hardware:now", ANSWER_SECONDS)
    # Each worker calls its GPU cuda:0. The keys have the GPU's number on its machine.
    loads = {
        (host_of(name), load.device.replace(":0", f":{first_gpu(name)}")): load
        for name, loads in answers.items()
        for load in loads
    }
    for labels, load in loads.items():
        if load.used_bytes is not None and load.total_bytes is not None:
            used.add_metric(labels, load.used_bytes)
            total.add_metric(labels, load.total_bytes)
        if load.busy_percent is not None:
            busy.add_metric(labels, load.busy_percent / 100)
    yield from (used, total, busy)


def _gauge(name: str, about: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"to_device_{name}", about, labels=labels)
