import io
import os
import re
import sqlite3
import stat
import time

import pytest
from sqlalchemy import update

from core.config import RunConfig
from core.store import backup as module
from core.store.__main__ import DAY_SECONDS, main, purge
from core.store.backup import backup, restore
from core.store.codec import StoreError
from core.store.database import words
from core.store.tables import RunSummary, Visitor
from tests.app import samples
from tests.app.store.made_up import RESULT, finished, newest, queue
from tests.process import python


def test_a_backup_while_the_app_runs_restores_all(
    store, url, other_url, open_store, tmp_path
):
    finished(store, "a")
    queue(store, "b", "you", RunConfig())
    store.measurements.keep("a:b", samples.RACE, machine="here", visitor="me")
    store.writer.flush()
    file = tmp_path / "backup"
    backup(url, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.glob("backup*")] == ["backup"]
    open_store(other_url).close()  # an app that has stored nothing
    restore(other_url, file)
    new = open_store(other_url)
    assert new.runs.get("a").value == RESULT
    assert [run.summary.id for run in new.runs.recover()] == ["b"]
    assert newest(new, "a:b").value == samples.RACE


def test_a_backup_is_not_restored_over_rows(store, url, tmp_path):
    finished(store, "a")
    store.writer.flush()
    backup(url, tmp_path / "backup")
    store.close()
    with pytest.raises(StoreError, match="DATABASE_URL"):
        restore(url, tmp_path / "backup")


def test_nothing_is_restored_from_a_damaged_backup(
    store, url, other_url, open_store, tmp_path
):
    for number in range(20):
        finished(store, f"{number}")
    store.writer.flush()
    file = tmp_path / "backup"
    backup(url, file)
    whole = file.read_bytes()
    other = tmp_path / "other"
    sqlite3.connect(other).execute("CREATE TABLE a (b)").connection.commit()
    for damaged in (whole[: len(whole) // 2], b"", b"no", other.read_bytes()):
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match=re.escape(str(file))):
            restore(other_url, file)
    file.write_bytes(whole)
    restore(other_url, file)
    assert open_store(other_url).runs.get("19").value == RESULT


@pytest.mark.parametrize("action", [backup, restore])
def test_without_postgres_clients_a_sentence_says_what_to_install(
    action, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / "file").touch()
    monkeypatch.setattr(module.Database, "own", lambda *_, **__: io.StringIO())
    monkeypatch.setattr(module, "_check_empty", lambda *_: None)
    with pytest.raises(StoreError, match="postgresql-client"):
        action("postgres://host/runs", tmp_path / "file")


@pytest.mark.slow
def test_a_password_is_no_argument_of_a_client(tmp_path, monkeypatch):
    client = tmp_path / "pg_dump"
    client.write_text(f"#!/bin/sh\necho $PGPASSWORD $@ >{tmp_path}/said; exit 1\n")
    client.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(StoreError, match="pg_dump"):
        backup("postgres://me:secret@host/runs", tmp_path / "backup")
    password, *arguments = (tmp_path / "said").read_text().split()
    assert password == "secret"
    assert arguments[0] == "--dbname=postgresql://me@host/runs"
    assert "secret" not in "".join(arguments)


def test_purge_deletes_what_is_old_and_nothing_else(store):
    now = time.time()
    for run_id, days in (("old", 31), ("new", 29)):
        finished(store, run_id, run_id)
        store.measurements.keep(
            run_id, 1, machine="here", measured_at=now - 86400 * days
        )
    queue(store, "waits", "waits")

    def age(session):
        day = now - 31 * DAY_SECONDS
        old = RunSummary.id.in_(("old", "waits"))
        session.execute(update(RunSummary).where(old).values(submitted=day))
        session.execute(update(Visitor).values(seen=day))

    store.writer.write(age)
    assert purge(store, 30) == 3
    assert {run.id for run in store.runs.find()} == {"new", "waits"}
    assert store.visitors.get("old") is None
    assert store.visitors.get("new")
    assert store.visitors.get("waits")
    assert newest(store, "old") is None
    assert newest(store, "new")
    assert purge(store, 30) == 0


def test_a_file_shrinks_when_much_is_deleted(file_url, open_store):
    store = open_store(file_url)
    for number in range(100):
        finished(store, f"{number}")
    store.writer.flush()
    store.visitors.delete("nobody")  # after it the journal is in the file
    before = store.database.path.stat().st_size
    assert purge(store, 0) == 101  # the visitor too
    assert store.database.path.stat().st_size < before / 2


@pytest.fixture
def command(monkeypatch, capsys):
    """Calls the command with a DATABASE_URL; has its exit status and what it says."""

    def call(url: str, *arguments: str) -> tuple[int, str]:
        monkeypatch.setenv("DATABASE_URL", url)
        try:
            status = main(arguments)
        except SystemExit as end:
            status = end.code
        output = capsys.readouterr()
        assert not (output.out and output.err)
        return status, output.out or output.err

    return call


def test_the_commands_do_what_they_say_in_a_line(
    file_url, open_store, tmp_path, command
):
    env = {**os.environ, "DATABASE_URL": file_url}
    upgraded = python("-m", "core.store", "upgrade", env=env).stdout
    store = open_store(file_url)
    assert upgraded.count("\n") == 1
    assert str(store.database.where) in upgraded
    finished(store, "a")
    store.writer.flush()
    file, new = str(tmp_path / "b"), f"sqlite:///{tmp_path / 'new.sqlite'}"
    for url, *arguments, told in (
        (file_url, "backup", file, file),
        (new, "restore", file, file),
        (new, "purge", "--older-than-days", "0", "2"),
    ):
        status, text = command(url, *arguments)
        assert (status, text.count("\n")) == (0, 1)
        assert told in text
    status, text = command(file_url, "backup", f"{file}/b")  # below a file
    assert (status, f"{file}/b" in text) == (2, True)


@pytest.mark.parametrize(
    ("url", "arguments", "why"),
    [
        ("mysql://host/x", ["upgrade"], "mysql://host/x"),
        ("sqlite:////none/x", ["backup", "b"], "/none/x"),
        ("sqlite:////proc/none/x", ["upgrade"], "/proc/none/x"),
        ("sqlite:///x", ["restore", "/none"], "/none"),
        (
            "sqlite:///x",
            ["purge", "--older-than-days", "-1"],
            "-1",
        ),
        ("sqlite:///x", ["purge"], "--older-than-days"),
        ("sqlite:///x", [], "command"),
    ],
)
def test_a_command_that_fails_says_why_in_one_line(url, arguments, why, command):
    status, text = command(url, *arguments)
    assert status == 2
    assert why in text
    assert text.startswith("python -m core.store")
    assert text.count("\n") == 1


def test_beside_the_app_a_command_reads_but_does_not_write(
    file_url, open_store, tmp_path, command
):
    where = open_store(file_url).database.where
    status, text = command(file_url, "purge", "--older-than-days", "1")
    assert status == 2
    assert words("two_apps", where=where) in text
    assert text.count("\n") == 1
    assert command(file_url, "backup", str(tmp_path / "b"))[0] == 0
