import re
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from core.store import database
from core.store.codec import StoreError
from core.store.database import DEFAULT, address, words
from core.store.store import Store
from tests.app.store.made_up import RESULT, begin, finished
from tests.process import HOUR


def test_the_address_is_given_or_of_the_environment_or_the_default(monkeypatch):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert address() == address(DEFAULT)
    assert address("sqlite:///a").database == "a"
    for scheme in ("postgres", "postgresql", "postgresql+psycopg"):
        monkeypatch.setenv("DATABASE_URL", f"{scheme}://me:secret@host/runs")
        url = address()
        assert (url.drivername, url.host) == ("postgresql+psycopg", "host")


@pytest.mark.parametrize(
    "text",
    ["runs.sqlite", "mysql://host/runs", "sqlite://", "sqlite:///:memory:", "oracle:"],
)
def test_what_is_no_address_is_refused_in_a_sentence(text):
    with pytest.raises(StoreError, match="sqlite:///"):
        address(text)


def test_a_password_is_not_shown(monkeypatch):
    monkeypatch.setattr(database, "CONNECT_SECONDS", 1)
    with pytest.raises(StoreError, match=r"127\.0\.0\.1") as caught:
        Store("postgres://me:secret@127.0.0.1:1/runs")
    assert "secret" not in str(caught.value)


def test_only_one_app_writes(url, open_store, monkeypatch):
    first = open_store(url)
    with monkeypatch.context() as patch:
        patch.setattr(database, "OWNER_SECONDS", 0.1)
        with pytest.raises(StoreError) as caught:
            open_store(url)
    assert str(caught.value) == words("two_apps", where=first.database.where)
    finished(first, "a")
    first.close()
    assert open_store(url).runs.get("a").value == RESULT


def test_nobody_else_reads_the_file(file_url, open_store):
    path = database.Database(file_url).path
    path.parent.mkdir()
    for file in (path, path.parent / f"{path.name}.lock"):
        file.touch()  # an older version, or a copy, may have left it so
        file.chmod(0o644)
    open_store(file_url)
    for file in path.parent.glob(f"{path.name}*"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_is_no_database_is_left_as_it_is(file_url, open_store):
    path = database.Database(file_url).path
    path.parent.mkdir()
    path.write_bytes(b"My diary. " * 1000)
    with pytest.raises(StoreError, match=re.escape(str(path))) as caught:
        open_store(file_url)
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
    assert path.read_bytes() == b"My diary. " * 1000


def test_sqlite_is_set_as_it_has_to_be(file_url, open_store):
    store = open_store(file_url)
    settings = {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "synchronous": 1,  # NORMAL
        "busy_timeout": 2000,
        "secure_delete": 1,
    }
    write = store.writer.write(
        lambda session: {
            name: session.scalar(text(f"PRAGMA {name}")) for name in settings
        }
    )
    assert write.result == settings
    with pytest.raises(StoreError) as caught:
        store.database.read(lambda session: session.execute(text("DELETE FROM runs")))
    assert "readonly" in str(caught.value.__cause__)


@pytest.mark.slow
def test_a_hundred_read_while_two_hundred_runs_end(store):
    for number in range(200):
        begin(store, f"{number}")
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


def test_readers_never_wait_for_a_writer(file_url, open_store, monkeypatch):
    monkeypatch.setattr(database, "BUSY_SECONDS", HOUR)
    store = open_store(file_url)
    other = sqlite3.connect(store.database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert store.runs.find() == []
    other.close()


def test_a_passing_store_says_why_it_does_not_last_and_leaves_nothing():
    store = Store.temporary("A reason.")
    finished(store, "run")
    assert store.writer.flush()
    assert store.runs.get("run").value
    assert "A reason." in store.problem
    folder = store.database.path.parent
    store.close()
    assert not folder.exists()
