import random
import shutil
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest

from core.serving import full_database, request_source
from core.serving.full_database import FULL_OF_CLASSES, is_limited, look
from core.store.database import Room
from core.store.store import Store
from tests.app.store.made_up import RESULT, finished, queue

SIZE = 100_000  # bytes of a run
RUNS = 30
ALL = RUNS * SIZE / 1e6  # megabytes


@pytest.fixture(autouse=True)
def _of_others(monkeypatch):
    monkeypatch.setattr(full_database, "is_for_this_machine", lambda: False)
    monkeypatch.setattr(request_source, "_others", Event())
    monkeypatch.delenv("MAX_DATABASE_MB", raising=False)
    monkeypatch.setattr("core.store.space.AT_ONCE", 1)


@pytest.fixture
def store(tmp_path) -> Store:
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    yield store
    store.close()


@pytest.fixture
def full(store):
    """A store with runs of as many bytes as real weights have, which don't compress."""
    for number in range(RUNS):
        queue(store, f"{number:02}", f"visitor {number}")
        store.runs.begin(f"{number:02}")
        weights = random.Random(number).randbytes(SIZE)
        store.runs.end(f"{number:02}", "finished", replace(RESULT, checkpoint=weights))
    store.writer.flush()
    return store


def count(store):
    return len(store.runs.find(hidden=True))


def disk(monkeypatch, total, free):
    """A disk on which the database lies beside the files of others."""
    usage = SimpleNamespace(total=total * 1e6, free=free * 1e6)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)


@pytest.mark.parametrize("is_own", [True, False])
def test_only_a_server_for_others_deletes_what_has_no_room(store, monkeypatch, is_own):
    monkeypatch.setattr(full_database, "is_for_this_machine", lambda: is_own)
    finished(store, "a")
    store.writer.flush()
    look(store, 1000)
    assert count(store) == 1
    monkeypatch.setattr(full_database, "MEGABYTE", 1)
    look(store, 1)
    assert count(store) == is_own


def test_a_setting_or_a_visitor_through_a_proxy_gives_ones_own_machine_a_limit(
    monkeypatch,
):
    monkeypatch.setattr(full_database, "is_for_this_machine", lambda: True)
    own = {"Host": "localhost:8501", "Origin": "http://localhost:8501"}
    request_source.note_visit(own)
    assert not is_limited()
    with monkeypatch.context() as patch:
        patch.setenv("MAX_DATABASE_MB", "10000")
        assert is_limited()
    assert not is_limited()
    request_source.note_visit(own | {"X-Forwarded-For": "203.0.113.9"})
    request_source.note_visit(own)
    assert is_limited()


def test_the_limit_does_not_depend_on_what_else_is_on_the_disk(full, monkeypatch):
    for free in (900, 100, 60):
        disk(monkeypatch, 1000, free)
        look(full, 10_000)
    assert count(full) == RUNS
    disk(monkeypatch, ALL, ALL)  # of which half is less than the database
    look(full, 10_000)
    assert count(full) < RUNS


def test_a_look_deletes_a_small_part(full, monkeypatch, caplog):
    monkeypatch.setattr(full_database, "MEGABYTE", int(ALL * 1e6 / 3))
    for look_number in (1, 2):
        look(full, 1)
        assert count(full) == RUNS - look_number
    assert "1 old rows were deleted" in caplog.text


def test_a_disk_that_others_fill_costs_only_the_room_to_go_on(full, monkeypatch):
    """The room in the file is the database's own."""
    needed = Room(20e6, 0).needed
    assert needed == 1e6
    disk(monkeypatch, 20, 0)
    for _ in range(10):
        look(full, 10_000)
    left = count(full)
    assert RUNS - 13 < left < RUNS - 7
    for run in full.runs.find()[:3]:  # their owners delete them
        full.runs.delete([run.id], run.visitor)
        look(full, 10_000)
    assert count(full) == left - 3


def test_a_large_disk_needs_no_large_part_free():
    assert Room(1e12, 0).needed == Room(1e10, 0).needed == 1e8


def test_the_log_says_once_that_classes_hold_the_room(full, monkeypatch, caplog):
    monkeypatch.setattr(full_database, "classes_hold_most", lambda _: True)
    monkeypatch.setattr("core.store.space.classes_hold_most", lambda _: True)
    for _ in range(2):
        look(full, 1)
    assert count(full) == RUNS
    assert caplog.text.count(FULL_OF_CLASSES) == 1
    assert full.is_full_of_classes
    look(full, 1000)
    assert not full.is_full_of_classes
