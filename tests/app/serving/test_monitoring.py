import json
import re
import threading
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import NewSession

from core.jobs.cluster import ROOT
from core.jobs.dask_connection import CHECK_SECONDS
from core.jobs.hosts import SILENT_SECONDS
from core.jobs.job import Job
from core.lessons.device.device_result import DeviceLoad
from core.serving import monitoring
from core.serving.monitoring import (
    ANSWER_SECONDS,
    HANGS,
    MOST_SECONDS,
    NO_FORKS,
    NO_LAB,
    NO_WORKER,
    NOT_KEPT,
    REGISTRY,
    PrivatePaths,
    ResponseTimes,
)
from tests.app import event_loop
from tests.app.ui.client import Client

ALL = Counter(train=1, lab=4)
CPU = DeviceLoad("cpu", 1, 2)
TOLD = {"lab": [DeviceLoad("cuda:0", 10, 30, 50), DeviceLoad("cuda:1", 9, 30), CPU]}
ASK = BackMsg(rerun_script=ClientState()).SerializeToString()
BEGIN = ForwardMsg(new_session=NewSession(name="page"))
PAGE, PART, EARLY = (
    ForwardMsg(script_finished=status)
    for status in (
        ForwardMsg.FINISHED_SUCCESSFULLY,
        ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
        ForwardMsg.FINISHED_EARLY_FOR_RERUN,
    )
)


@pytest.fixture
def parts() -> SimpleNamespace:
    """An app that lacks nothing, until a test takes something away."""
    jobs = [Job(str(n), "a:b", (), "train", status=s) for n, s in enumerate("rqq")]
    here = SimpleNamespace(
        problem="",
        is_there=lambda _seconds: True,
        lanes=lambda: ALL,
        going_on=lambda: jobs,
        hosts=SimpleNamespace(answers=lambda *_: TOLD, forks=""),
    )
    routes = monitoring.routes(lambda: here, lambda: here)
    routes.append(Route("/_stcore/metrics", lambda _: PlainTextResponse("theirs")))
    app = PrivatePaths(Starlette(routes=routes))
    here.client = Client(app, "127.0.0.1", host="127.0.0.1:8501")
    here.stranger = Client(app)
    return here


def missing(parts: SimpleNamespace) -> dict[str, str]:
    answer = parts.client.get("/healthz")
    health = json.loads(answer.body)
    assert health["status"] == ("ok" if answer.status == 200 else "missing")
    assert (answer.status == 200) == (health["missing"] == {})
    return health["missing"]


@pytest.mark.parametrize(
    ("lost", "problems"),
    [
        ({"is_there": lambda _: False}, {"database": NOT_KEPT}),
        ({"is_there": lambda _: False, "problem": "Full."}, {"database": "Full."}),
        (
            {"lanes": lambda: None, "problem": "It can't be reached."},
            {
                "scheduler": "It can't be reached.",
                "training worker": NO_WORKER,
                "lab worker": NO_LAB,
            },
        ),
        (
            {"hosts": SimpleNamespace(forks="stopped")},
            {"server of forks": NO_FORKS.format("stopped")},
        ),
        ({"lanes": lambda: Counter(lab=4)}, {"training worker": NO_WORKER}),
        ({"lanes": lambda: Counter(train=1)}, {"lab worker": NO_LAB}),
        (
            {"lanes": Counter, "problem": "They can't start."},
            dict.fromkeys(("training worker", "lab worker"), "They can't start."),
        ),
    ],
)
def test_what_is_lost_is_said_until_it_is_back(parts, lost, problems):
    before = dict(vars(parts))
    assert missing(parts) == {}
    vars(parts).update(lost)
    assert missing(parts) == problems
    assert parts.client.get("/livez").status == 200
    vars(parts).update(before)
    assert missing(parts) == {}


def test_strangers_learn_no_more_than_whether_all_is_well(parts):
    for path in ("/metrics", "/_stcore/metrics"):
        assert parts.client.get(path).status == 200
        assert parts.stranger.get(path).status == 404
    assert parts.stranger.get("/livez").status == 200
    answer = parts.stranger.get("/healthz")
    assert (answer.status, answer.body) == (200, "ok\n")
    vars(parts).update(lanes=lambda: None, problem="No tcp://10.0.0.3:8786.")
    answer = parts.stranger.get("/healthz")
    assert (answer.status, answer.body) == (503, "missing\n")


def test_an_app_that_hangs_is_told_apart_from_one_that_is_healthy(parts, monkeypatch):
    monkeypatch.setattr(monitoring, "MOST_SECONDS", 0.02)
    calls, release = [], threading.Event()
    parts.is_there = lambda _: calls.append(1) or release.wait(60)
    try:
        for _ in range(5):
            assert missing(parts) == {"app": HANGS}
        answer = parts.client.get("/metrics")
        assert (answer.status, answer.body) == (503, f"{HANGS}\n")
        assert len(calls) <= 2  # else each probe would keep a thread
    finally:
        release.set()
    monkeypatch.setattr(monitoring, "MOST_SECONDS", 60)
    assert missing(parts) == {}


def test_what_is_lost_is_said_as_soon_as_the_documents_promise():
    hosting = (ROOT / "docs" / "hosting.md").read_text("utf-8")
    assert re.search(r"\bten\s+seconds\b", hosting)
    assert SILENT_SECONDS + CHECK_SECONDS + ANSWER_SECONDS <= 10
    assert ANSWER_SECONDS < MOST_SECONDS <= 10


def samples(parts: SimpleNamespace) -> dict[tuple[str, ...], float]:
    answer = parts.client.get("/metrics")
    assert answer.status == 200
    return {
        (sample.name.removeprefix("to_device_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.body)
        for sample in family.samples
    }


def test_metrics_say_what_there_is_now(parts):
    metrics = samples(parts)
    assert metrics["up", "database"] == metrics["up", "training worker"] == 1
    assert (metrics["jobs", "a:b", "q"], metrics["jobs", "a:b", "r"]) == (2, 1)
    assert (metrics["workers", "train"], metrics["workers", "lab"]) == (1, 4)
    assert metrics["device_memory_used_bytes", "cuda:0", ""] == 20
    assert metrics["device_memory_used_bytes", "cuda:1", ""] == 21
    assert metrics["device_memory_total_bytes", "cpu", ""] == 2
    assert metrics["device_busy_ratio", "cuda:0", ""] == 0.5
    assert ("device_busy_ratio", "cpu", "") not in metrics
    assert ("sessions",) in metrics
    assert ("process_resident_memory_bytes",) in metrics


def test_metrics_are_of_the_devices_of_all_machines(parts):
    busy = [DeviceLoad("cuda:0", 10, 30, 50), CPU]
    calm = [DeviceLoad("cuda:0", 5, 40, 25), CPU]
    answers = {"b-train-0": busy, "b-train-1": calm, "a-lab": busy}
    parts.hosts.answers = lambda *_: answers
    parts.lanes = lambda: Counter(train=2)  # nobody answers quick questions
    metrics = samples(parts)
    used = {k[1:]: v for k, v in metrics.items() if k[0] == "device_memory_used_bytes"}
    first = {("cuda:0", "a"): 20, ("cpu", "a"): 1}
    second = {("cuda:0", "b"): 20, ("cuda:1", "b"): 35, ("cpu", "b"): 1}
    assert used == first | second
    assert metrics["device_busy_ratio", "cuda:1", "b"] == 0.25


def test_metrics_are_there_when_the_workers_are_not(parts):
    parts.hosts.answers, parts.lanes = lambda *_: {}, lambda: None
    metrics = samples(parts)
    assert metrics["up", "scheduler"] == metrics["workers", "train"] == 0
    assert not [labels for labels in metrics if labels[0].startswith("device")]


@pytest.mark.parametrize("file", ["alerts.yml", "grafana.json"])
def test_what_watches_asks_for_what_is_there(parts, file):
    text = (ROOT / "deploy" / "monitoring" / file).read_text("utf-8")
    names = set(re.findall(r"\b(?:to_device|process)_\w+", text))
    body = parts.client.get("/metrics").body
    there = set(re.findall(r"# TYPE (\w+)", body))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in names} <= there
    assert len(names) > 4


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(monitoring.time, "monotonic", lambda: now[0])
    return now


def read(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"to_device_{name}", labels) or 0.0


def tab(clock: list[float], *messages: bytes | ForwardMsg) -> None:
    """A connection with these messages, a second apart; bytes come from the browser."""
    inbox = [message for message in messages if isinstance(message, bytes)]

    async def streamlit(_scope, receive, send) -> None:
        for entry in messages:
            clock[0] += 1
            if isinstance(entry, bytes):
                assert (await receive())["bytes"] == entry
            else:
                data = entry.SerializeToString()
                await send({"type": "websocket.send", "bytes": data})
            assert read("sessions") == 1

    async def receive() -> dict:
        return {"type": "websocket.receive", "bytes": inbox.pop(0)}

    sent = []

    async def send(message: dict) -> None:
        sent.append(message["bytes"])

    event_loop.run(ResponseTimes(streamlit)({"type": "websocket"}, receive, send))
    assert sent == [e.SerializeToString() for e in messages if not isinstance(e, bytes)]


@pytest.mark.parametrize(
    ("messages", "of", "count", "seconds"),
    [
        ((ASK, BEGIN, PAGE), "page", 1, 2),
        ((ASK, BEGIN, PART), "part", 1, 2),
        ((ASK, ASK, BEGIN, PART), "part", 2, 3 + 2),  # one run answers both
        ((ASK, BEGIN, ASK, PART, BEGIN, PART), "part", 2, 3 + 3),  # each its own
        ((ASK, BEGIN, ASK, EARLY, BEGIN, PAGE), "page", 2, 5 + 3),  # the second both
        ((b"nonsense", BEGIN, PAGE), "page", 0, 0),  # nobody has asked
        ((ASK, BEGIN), "page", 0, 0),  # the tab was closed
    ],
)
def test_a_look_lasts_from_the_question_to_the_end_of_its_answer(
    clock, messages, of, count, seconds
):
    before = read("look_seconds_count", of=of), read("look_seconds_sum", of=of)
    tab(clock, *messages)
    assert read("look_seconds_count", of=of) - before[0] == count
    assert read("look_seconds_sum", of=of) - before[1] == seconds
    assert read("sessions") == 0


def test_a_job_is_counted_by_what_it_does_and_how_it_ends(clock):
    clock[0] = 25.0
    job = Job("a", "a.kind:of", (), "train", arrived=10.0)
    monitoring.count_job(replace(job, status="cancelled"))
    monitoring.count_job(replace(job, status="finished", began=13.0, seconds=12.0))
    kind = "a.kind:of"
    assert read("job_wait_seconds_sum", kind=kind) == 15 + 3
    assert read("job_run_seconds_sum", kind=kind, status="finished") == 12
    assert read("job_run_seconds_count", kind=kind, status="cancelled") == 1
