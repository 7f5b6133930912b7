import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text

from core.store import database, writer
from core.store.codec import StoreError
from core.store.database import words
from tests.app.jobs.follow import wait
from tests.app.store.failures import (
    END_OTHERS,
    as_admin,
    disk_full,
    locked,
    moved,
    read_only,
    server_full,
    server_read_only,
    stopped,
)
from tests.app.store.made_up import HISTORY, STARTED, begin, queue
from tests.app.store.made_up import RESULT as SMALL
from tests.process import HOUR

UNREADABLE = re.escape(words("unreadable"))
RESULT = replace(SMALL, checkpoint=bytes(400_000))  # as large as a real one


SLOW = pytest.mark.slow


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RETRY_SECONDS", 0.1)
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.2)


@pytest.mark.parametrize(
    ("url", "failure", "cause"),
    [
        ("sqlite", disk_full, "full"),
        ("sqlite", read_only, "read_only"),
        ("sqlite", locked, "busy"),
        ("sqlite", moved, "gone"),
        pytest.param("postgres", stopped, "lost", marks=SLOW),
        pytest.param("postgres", server_read_only, "read_only", marks=SLOW),
        pytest.param("postgres", server_full, "full", marks=SLOW),
    ],
    indirect=["url"],
)
def test_writes_are_stored_once_the_database_is_back(
    store, request, url, failure, cause, monkeypatch
):
    server = None if url.startswith("sqlite") else request.getfixturevalue("postgres")
    begin(store, "a")
    store.runs.started("a", STARTED)
    assert store.writer.flush()
    assert store.is_there(5)
    with failure(store, server):
        store.runs.epoch("a", HISTORY[0])
        store.runs.end("a", "finished", RESULT)
        assert not queue(store, "b", "you")
        store.runs.begin("b")
        # It was only the connection that broke at first.
        wait(lambda: words(f"causes.{cause}") in store.problem)
        assert not store.is_there(5)
        monkeypatch.setattr(writer, "PATIENCE_SECONDS", HOUR)
        assert not queue(store, "c", "you")  # who clicks does not wait for a lost cause
    assert store.writer.flush(60)
    assert store.problem == ""
    assert store.is_there(5)
    assert store.runs.get("a").value == RESULT
    assert store.runs.get("b").summary.status == "running"
    assert store.runs.get("c").summary.status == "queued"


def test_a_database_that_hangs_is_asked_once(store):
    free = threading.Event()
    store.writer.put(lambda _: free.wait(60))
    assert not any(store.is_there(0.01) for _ in range(5))
    assert len(store.writer._waiting) == 2
    assert store.problem == ""
    free.set()
    assert store.is_there(60)


def test_who_reads_from_a_database_that_hangs_is_told_in_time(store, monkeypatch):
    """Only the first wait for it; as soon as it answers, all is as before."""
    monkeypatch.setattr(database, "READ_SECONDS", 0.2)
    free = threading.Event()
    monkeypatch.setattr(store.database, "_answered", 0.0)
    with pytest.raises(StoreError, match=UNREADABLE):
        store.database.read(lambda _: free.wait(60))
    assert words("unreadable") in store.problem
    monkeypatch.setattr(database, "READ_SECONDS", HOUR)
    with pytest.raises(StoreError, match=UNREADABLE):
        store.runs.find()
    free.set()
    wait(lambda: store.problem == "")
    assert store.runs.find() == []


def test_a_database_that_only_has_much_to_do_is_waited_for(store, monkeypatch):
    monkeypatch.setattr(database, "READ_SECONDS", 0.2)
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(store.database.read, lambda _: free.wait(60))
        for _ in range(20):
            assert store.runs.find() == []
            time.sleep(0.05)
        free.set()
        assert slow.result(60)


def test_who_writes_to_a_database_that_hangs_is_told(store, monkeypatch):
    free = threading.Event()
    store.writer.put(lambda _: free.wait(60))
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", 0.1)
    wait(lambda: words("causes.lost") in store.problem)
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", HOUR)
    assert store.problem == "", "a commit may take its time"
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", 0.1)
    assert not queue(store, "a")
    free.set()
    assert store.writer.flush(60)
    assert store.problem == ""


def test_an_idle_app_notices_that_its_database_is_gone(store, postgres, url):
    failure = moved if url.startswith("sqlite") else stopped
    assert store.is_there(5)
    with failure(store, postgres):
        assert not store.is_there(60)
        assert store.problem
    wait(lambda: store.is_there(5))
    assert store.problem == ""


@SLOW
def test_a_connection_that_was_cut_is_made_anew(server_url, postgres, open_store):
    store = open_store(server_url)
    assert store.runs.find() == []
    with as_admin(postgres, store) as connection:
        connection.execute(END_OTHERS)
    assert queue(store, "a")
    assert [run.id for run in store.runs.find()] == ["a"]


def test_reads_and_deletions_say_that_the_database_is_away(store, postgres, url):
    failure = moved if url.startswith("sqlite") else stopped
    store.database.readers.dispose()  # SQLite reads on from a file that it has open
    with failure(store, postgres):
        with pytest.raises(StoreError, match=UNREADABLE):
            store.runs.find()
        with pytest.raises(StoreError, match=re.escape(words("later"))):
            store.visitors.delete("me")
    assert store.runs.find() == []


def test_a_wrong_write_does_not_hold_up_the_others(store):
    go = threading.Event()
    store.writer.put(lambda _: go.wait())  # so that the next are one batch
    done = []
    store.writer.put(lambda _: done.append("before"))
    wrong = store.writer.put(
        lambda session: session.execute(text("SELECT * FROM nothing"))
    )
    broken = store.writer.put(lambda _: 1 / 0)
    store.writer.put(lambda _: done.append("after"))
    go.set()
    assert store.writer.flush()
    assert done[-1] == "after"
    assert {"before", "after"} == set(done)
    assert "nothing" in str(wrong.error)
    assert isinstance(broken.error, ZeroDivisionError)
    assert store.problem == ""
    with pytest.raises(ZeroDivisionError):
        store.writer.write(lambda _: 1 / 0)


def test_what_does_not_fit_in_memory_is_counted(file_url, open_store, monkeypatch):
    store = open_store(file_url)
    with locked(store, None):
        queue(store, "a")
        monkeypatch.setattr(writer, "MOST_BYTES", 20_000)
        for number in range(30):
            queue(store, f"b{number}")
        lost = int(re.search(r"\d+", store.problem)[0])
    assert store.writer.flush(60)
    ids = [run.id for run in reversed(store.runs.find())]
    assert ids == ["a", *(f"b{n}" for n in range(len(ids) - 1))]
    assert 5 < len(ids) < 20
    assert lost == 31 - len(ids)


def test_after_the_end_nothing_is_taken(url, open_store, monkeypatch):
    store = open_store(url)
    store.close()
    monkeypatch.setattr(writer, "PATIENCE_SECONDS", HOUR)
    assert not queue(store, "a")
