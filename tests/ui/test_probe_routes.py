"""core.ui.probe_routes: what watches the app is told the truth, and soon."""

import json
import re
import threading
from collections import Counter
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette

from core.jobs.cluster import ROOT
from core.jobs.connection import LOOK_SECONDS
from core.jobs.job import Job
from core.jobs.roster import SILENT_SECONDS
from core.machine.results import DeviceLoad
from core.ui import probe_routes
from core.ui.probe_routes import (
    ANSWER_SECONDS,
    HANGS,
    MOST_SECONDS,
    NO_WORKER,
    NOT_KEPT,
)
from tests.ui.client import Client

ALL = Counter(train=1, lab=4)
TOLD = {
    "lab": [
        DeviceLoad("cuda:0", 10, 30, 50),
        DeviceLoad("cuda:1", 9, 30),
        DeviceLoad("cpu", 1, 2),
    ]
}


@pytest.fixture
def parts(monkeypatch) -> SimpleNamespace:
    """An app that lacks nothing, until a test takes something away."""
    jobs = [Job(str(n), "a:b", (), "train", status=s) for n, s in enumerate("rqq")]
    here = SimpleNamespace(
        problem="",
        is_there=lambda _seconds: True,
        lanes=lambda: ALL,
        going_on=lambda: jobs,
        hosts=SimpleNamespace(answers=lambda *_: TOLD),
    )
    monkeypatch.setattr(probe_routes, "store", lambda: here)
    monkeypatch.setattr(probe_routes, "engine", lambda: here)
    return here


def get(path: str) -> tuple[int, str]:
    client = Client(Starlette(routes=probe_routes.ROUTES)).get(path)
    return client.status, client.body


def missing() -> dict[str, str]:
    status, body = get("/healthz")
    found = json.loads(body)
    assert found["status"] == ("ok" if status == 200 else "missing")
    assert (status == 200) == (found["missing"] == {})
    return found["missing"]


@pytest.mark.usefixtures("parts")
def test_an_app_that_lacks_nothing_is_healthy():
    assert missing() == {}


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ({"is_there": lambda _: False}, {"database": NOT_KEPT}),
        (
            {"is_there": lambda _: False, "problem": "The disk is full."},
            {"database": "The disk is full."},
        ),
        (
            {"lanes": lambda: None, "problem": "It can't be reached."},
            {"scheduler": "It can't be reached.", "training worker": NO_WORKER},
        ),
        ({"lanes": lambda: Counter(lab=4)}, {"training worker": NO_WORKER}),
    ],
)
def test_what_is_lost_is_said_until_it_is_back(parts, lost, said):
    """While the page that says that the process serves goes on saying so."""
    before = dict(vars(parts))
    vars(parts).update(lost)
    assert missing() == said
    assert get("/livez")[0] == 200
    vars(parts).update(before)
    assert missing() == {}


def test_an_app_that_hangs_is_told_apart_from_one_that_is_healthy(parts, monkeypatch):
    """However often it is asked, two threads wait at most."""
    monkeypatch.setattr(probe_routes, "MOST_SECONDS", 0.02)
    release = threading.Event()
    parts.is_there = lambda _: release.wait(20)
    try:
        for _ in range(5):
            assert missing() == {"app": HANGS}
        assert get("/metrics") == (503, f"{HANGS}\n")
        assert sum("probe" in each.name for each in threading.enumerate()) <= 2
    finally:
        release.set()
    monkeypatch.setattr(probe_routes, "MOST_SECONDS", 5)
    assert missing() == {}


def test_what_is_lost_is_said_as_soon_as_the_documents_promise():
    """A look may come late, the last word be as old as may be, and the answer slow."""
    hosting = (ROOT / "docs" / "hosting.md").read_text("utf-8")
    assert "and what is missing, within ten seconds" in hosting
    assert SILENT_SECONDS + LOOK_SECONDS + ANSWER_SECONDS <= 10
    assert ANSWER_SECONDS < MOST_SECONDS <= 10


def samples() -> dict[tuple[str, ...], float]:
    """The figures of /metrics by name and sorted labels, as Prometheus reads them."""
    status, body = get("/metrics")
    assert status == 200
    return {
        (each.name.removeprefix("to_device_"), *each.labels.values()): each.value
        for family in text_string_to_metric_families(body)
        for each in family.samples
    }


@pytest.mark.usefixtures("parts")
def test_metrics_say_what_there_is_now():
    """Parts, jobs, workers, and devices: what one does not tell is left out."""
    found = samples()
    assert found["up", "database"] == found["up", "training worker"] == 1
    assert (found["jobs", "a:b", "q"], found["jobs", "a:b", "r"]) == (2, 1)
    assert (found["workers", "train"], found["workers", "lab"]) == (1, 4)
    assert found["device_memory_used_bytes", "cuda:0", ""] == 20
    assert found["device_memory_used_bytes", "cuda:1", ""] == 21
    assert found["device_memory_total_bytes", "cpu", ""] == 2
    assert found["device_busy_ratio", "cuda:0", ""] == 0.5
    assert ("device_busy_ratio", "cpu", "") not in found
    assert ("sessions",) in found
    assert ("process_resident_memory_bytes",) in found


def test_metrics_are_of_the_devices_of_all_machines(parts):
    """Also where a machine only trains, and each worker knows but one of its GPUs."""
    one = [DeviceLoad("cuda:0", 10, 30, 50), DeviceLoad("cpu", 1, 2)]
    two = [DeviceLoad("cuda:0", 5, 40, 25), DeviceLoad("cpu", 1, 2)]
    parts.hosts.answers = lambda *_: {"b-train-0": one, "b-train-1": two, "a-lab": one}
    parts.lanes = lambda: Counter(train=2)  # nobody answers quick questions
    found = samples()
    used = {k[1:]: v for k, v in found.items() if k[0] == "device_memory_used_bytes"}
    first = {("cuda:0", "a"): 20, ("cpu", "a"): 1}
    second = {("cuda:0", "b"): 20, ("cuda:1", "b"): 35, ("cpu", "b"): 1}
    assert used == first | second
    assert found["device_busy_ratio", "cuda:1", "b"] == 0.25


def test_metrics_are_there_when_the_workers_are_not(parts):
    """And when no machine says in time how full its devices are."""
    parts.hosts.answers = lambda *_: {}
    assert not [each for each in samples() if each[0].startswith("device")]
    parts.lanes = lambda: None
    found = samples()
    assert found["up", "scheduler"] == found["workers", "train"] == 0


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize("file", ["alerts.yml", "grafana.json"])
def test_what_watches_asks_for_what_is_there(file):
    """No alert and no panel is silent because a name has changed."""
    text = (ROOT / "deploy" / "monitoring" / file).read_text("utf-8")
    asked = set(re.findall(r"\b(?:to_device|process)_\w+", text))
    body = get("/metrics")[1]
    there = set(re.findall(r"# TYPE (\w+)", body))
    assert {re.sub("_(bucket|count|sum)$", "", name) for name in asked} <= there
    assert len(asked) > 4
