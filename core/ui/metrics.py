"""What is counted while people use the app, for Prometheus.

Labels have few values: a function's address, a status. Nobody's name, id or address is
in them.
"""

import time
from contextlib import suppress
from typing import Any

from google.protobuf.message import DecodeError
from prometheus_client import CollectorRegistry, Gauge, Histogram
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from core.jobs.job import Job

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)

OURS: dict[str, Any] = {"namespace": "to_device", "registry": REGISTRY}
LONG = (0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1200)  # seconds, of jobs
SHORT = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)  # seconds, of looks
WAITED = Histogram(
    "job_wait_seconds",
    "From the click until a worker has the job",
    ["kind"],
    buckets=LONG,
    **OURS,
)
RAN = Histogram(
    "job_run_seconds",
    "From when a worker has the job until it has ended",
    ["kind", "status"],
    buckets=LONG,
    **OURS,
)
LOOKS = Histogram(
    "look_seconds",
    "From what a browser asks to the end of the answer; of a whole page, or a part",
    ["of"],
    buckets=SHORT,
    **OURS,
)
SESSIONS = Gauge("sessions", "Tabs that are connected", **OURS)

MOST_BYTES = 16_384  # of a message that is read here; pictures and tables are larger
END_OF = {
    ForwardMsg.FINISHED_SUCCESSFULLY: "page",
    ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY: "part",
}


def ended(job: Job) -> None:
    """A job has; one that nobody began with has only waited."""
    kind = job.address
    begun = job.started or job.stopped or job.submitted
    WAITED.labels(kind).observe(begun - job.submitted)
    RAN.labels(kind, job.status).observe(job.seconds or 0.0)


class Looks:
    """ASGI middleware: counts connected tabs, and times what they wait for.

    A run of the script answers all that was asked before it began. One that is ended
    early, for a newer one, leaves what it was to answer to that.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return await self.app(scope, receive, send)
        asked: list[float] = []  # when, what no run was begun for
        answering: list[float] = []  # when that was asked which the run answers

        async def hear() -> Message:
            message = await receive()
            data = message.get("bytes") or b""
            with suppress(DecodeError):  # Streamlit closes such a connection
                if 0 < len(data) < MOST_BYTES and _asks(data):
                    asked.append(time.monotonic())
            return message

        async def say(message: Message) -> None:
            await send(message)
            data = message.get("bytes") or b""
            said = ForwardMsg.FromString(data if len(data) < MOST_BYTES else b"")
            match said.WhichOneof("type"):
                case "new_session":
                    answering.extend(asked)
                    asked.clear()
                case "script_finished" if said.script_finished in END_OF:
                    now, of = time.monotonic(), END_OF[said.script_finished]
                    for when in answering:
                        LOOKS.labels(of).observe(now - when)
                    answering.clear()

        with SESSIONS.track_inprogress():
            await self.app(scope, hear, say)


def _asks(data: bytes) -> bool:
    return BackMsg.FromString(data).WhichOneof("type") == "rerun_script"
