"""core.store.database: where it is, who may write, and what a killed app leaves."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.jobs.cluster import ROOT
from core.store import database, tables
from core.store.codec import StoreError
from core.store.database import DEFAULT, address
from core.store.store import Store
from tests.store.made_up import CONFIG, RESULT, RUN, finished


def test_postgres_addresses_are_those_of_psycopg_3():
    """Hosts hand out postgres://, which SQLAlchemy does not know."""
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        found = address(f"{scheme}://me:secret@host/runs")
        assert found.drivername == "postgresql+psycopg"
        assert found.database == "runs"


def test_the_address_is_given_or_of_the_environment_or_the_default(monkeypatch):
    """In this order."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert address() == address(DEFAULT)
    monkeypatch.setenv("DATABASE_URL", "postgres://host/runs")
    assert address().host == "host"
    assert address("sqlite:///a").database == "a"


@pytest.mark.parametrize(
    "given",
    ["runs.sqlite", "mysql://host/runs", "sqlite://", "sqlite:///:memory:", "oracle:"],
)
def test_what_is_no_address_is_refused_in_a_sentence(given):
    """Which says what to write, and shows no password."""
    with pytest.raises(StoreError, match="write sqlite:///"):
        address(given)


def test_a_password_is_not_shown(monkeypatch):
    """Not where the server can't be reached either."""
    monkeypatch.setattr(database, "CONNECT_SECONDS", 1)
    with pytest.raises(StoreError, match="can't be used") as caught:
        Store("postgres://me:secret@127.0.0.1:1/runs")
    assert "secret" not in str(caught.value)


def test_only_one_app_writes(url, open_store, monkeypatch):
    """The second is told so at its start, and starts once the first has ended."""
    monkeypatch.setattr(database, "OWNER_SECONDS", 0.1)
    first = open_store(url)
    with pytest.raises(StoreError, match="Another app keeps its runs in"):
        open_store(url)
    finished(first, "a")
    first.close()
    assert open_store(url).runs.get("a").value == RESULT


def test_nobody_else_reads_the_file(file_url, open_store):
    """The codes that visitors come back with are in it."""
    path = open_store(file_url).database.path
    for file in path.parent.glob(f"{path.name}*"):
        if not file.name.endswith(".lock"):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_is_no_database_is_left_as_it_is(file_url, open_store):
    """It may be something that somebody needs."""
    path = database.Database(file_url).path
    path.parent.mkdir()
    path.write_bytes(b"My diary. " * 1000)
    with pytest.raises(StoreError, match="can't be used: file is not a database"):
        open_store(file_url)
    assert path.read_bytes() == b"My diary. " * 1000


def test_sqlite_is_set_as_it_has_to_be(file_url, open_store):
    """Readers don't wait for the writer, and can't write by mistake."""
    store = open_store(file_url)
    settings = {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 1,  # NORMAL
        "busy_timeout": 2000,
        "secure_delete": 1,
    }
    write = store.writer.write(
        lambda each: {
            name: each.exec_driver_sql(f"PRAGMA {name}").scalar() for name in settings
        }
    )
    assert write.result == settings
    with (
        pytest.raises(StoreError) as caught,
        store.database.read() as connection,
    ):
        connection.exec_driver_sql("DELETE FROM runs")
    assert "readonly" in str(caught.value.__cause__)


CHILD = """
import sys
from core.store.store import Store
from tests.store.made_up import CONFIG, RUN, finished
store = Store(sys.argv[1])
finished(store, "finished")
store.runs.queue("running", "me", RUN, (CONFIG,))
store.runs.begin("running")
for number in range(100_000):
    assert store.runs.queue(f"{number}", "me", RUN, (CONFIG,))
    print(number, flush=True)
"""


def test_what_was_committed_is_there_after_a_kill(url, open_store):
    """The app is killed while it writes: no row that it had answered for is missing."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    for line in child.stdout:
        if int(line) == 30:
            os.kill(child.pid, signal.SIGKILL)
            break
    last = max([30, *map(int, child.stdout.read().split())])
    child.wait()
    store = open_store(url)
    waiting = [each.id for each in store.runs.recover()]
    assert waiting[: last + 1] == [str(number) for number in range(last + 1)]
    assert len(waiting) <= last + 2
    assert store.runs.get("finished").value == RESULT
    assert store.runs.get("running").summary.status == "interrupted"


def test_a_hundred_read_while_two_hundred_runs_end(store):
    """Nobody finds the database locked, or waits for a connection in vain."""
    for number in range(200):
        store.runs.queue(f"{number}", "me", RUN, (CONFIG,))
        store.runs.begin(f"{number}")
    go, all_ended = threading.Barrier(101), threading.Event()

    def read(_number: int) -> int:
        go.wait()
        lists, ended = 0, False
        while not ended:
            assert len(store.runs.find("me", limit=50)) == 50
            lists, ended = lists + 1, all_ended.wait(0.2)
        return lists

    with ThreadPoolExecutor(100) as pool:
        readers = pool.map(read, range(100))
        go.wait()
        for number in range(200):
            store.runs.end(f"{number}", "finished", RESULT)
        assert store.writer.flush(60)
        all_ended.set()
        assert min(readers) >= 1
    assert store.problem == ""
    assert len(store.runs.find(status="finished")) == 200


def test_a_list_of_two_thousand_runs_is_quick(file_url, open_store):
    """Its curves and checkpoints are not loaded. Of five tries, this thread's work."""
    store = open_store(file_url)
    finished(store, "0")

    def copy(connection):
        for table in (tables.runs, tables.curves, tables.checkpoints):
            first = connection.execute(table.select()).one()._asdict()
            for number in range(1, 2000):
                new = {"id": f"{number}", "seq": number + 1, "run_id": f"{number}"}
                new["state_dict"] = bytes(20_000)
                row = {name: new.get(name, value) for name, value in first.items()}
                connection.execute(table.insert(), row)

    store.writer.put(copy)
    assert store.writer.flush(60)
    seconds = []
    for _ in range(5):
        began = time.thread_time()
        assert len(store.runs.find("me")) == 2000
        seconds.append(time.thread_time() - began)
    assert min(seconds) < 0.1


def test_readers_never_wait_for_a_writer(file_url, open_store):
    """Also not while another program holds the file's write lock."""
    store = open_store(file_url)
    other = sqlite3.connect(store.database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    began = time.monotonic()
    assert store.runs.find() == []
    assert time.monotonic() - began < 1
    other.close()
