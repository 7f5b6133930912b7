import sys
import time
import uuid
from collections.abc import Iterator

import pytest

from core.classroom import standings_page
from core.classroom.room import Room
from core.jobs import measurements
from core.jobs.job import Job
from core.ui import clicks, server
from core.ui import last_measurement as measured
from tests.app.pages.walk import CURVE, TEACHER, finished_run


@pytest.fixture(autouse=True)
def machine_is_known(engine):
    """Pages are drawn as they are once the workers have said what is here."""
    deadline = time.monotonic() + 60
    while engine.machine() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(autouse=True)
def single_clicks(monkeypatch) -> None:
    """Tests click faster than people; each of their clicks counts."""
    monkeypatch.setattr(clicks, "DOUBLE_CLICK_SECONDS", 0.0)


@pytest.fixture(autouse=True)
def measured_before(monkeypatch) -> dict[str, Job]:
    """What was measured on this machine, by what measured it: nothing yet."""
    newest_jobs: dict[str, Job] = {}
    monkeypatch.setattr(
        measured, "newest", lambda kind, _subject=None: newest_jobs.get(kind)
    )
    return newest_jobs


@pytest.fixture(autouse=True)
def nothing_recorded(monkeypatch) -> None:
    """Pages show this machine's measurements alone, none of the records of others."""
    monkeypatch.setattr(measurements, "recorded", lambda: ())


@pytest.fixture
def somebody(monkeypatch) -> str:
    """The visitor of all pages of a test, who has no run of an earlier one."""
    who, ask = uuid.uuid4().hex, server.visitor
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("visitor") is ask:
            monkeypatch.setattr(module, "visitor", lambda: who)
    return who


@pytest.fixture
def room(engine) -> Iterator[Room]:
    """The room of the pages; its classes are deleted after the test."""
    yield server.room()
    for class_ in server.store().classes.all():
        server.room().delete(TEACHER, class_.id, engine.forget)
    standings_page.clear()


@pytest.fixture(scope="session")
def run_id(engine) -> str:
    """A finished run on images, for all who only look at one."""
    return finished_run(engine)


@pytest.fixture(scope="session")
def curve_run_id(engine) -> str:
    return finished_run(engine, CURVE)
