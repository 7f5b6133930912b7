"""core.store.maintenance and its command: backup, restore, purge."""

import gzip
import os
import stat
import time

import pytest

from core.config import RunConfig
from core.store import tables
from core.store.__main__ import main
from core.store.codec import StoreError
from core.store.maintenance import DAY_SECONDS, backup, purge, restore
from tests import samples
from tests.process import python
from tests.store.made_up import CONFIG, RESULT, RUN, finished


@pytest.mark.parametrize("other", ["sqlite", "postgres"])
def test_what_is_restored_is_what_was_backed_up(
    store, other, request, open_store, tmp_path
):
    """From either database into either, while the app runs."""
    finished(store, "a")
    store.runs.queue("b", "you", RUN, (RunConfig(),))
    store.measurements.keep("a:b", samples.RACE, machine="here", visitor="me")
    store.writer.flush()
    file = tmp_path / "backup.gz"
    assert backup(store.database.url.render_as_string(False), file) == 10
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.close()

    if other == "sqlite":
        url = f"sqlite:///{tmp_path / 'new' / 'store.sqlite'}"
    else:
        url = request.getfixturevalue("postgres").empty_database("other")
    assert restore(url, file) == 10
    new = open_store(url)
    assert new.runs.get("a").value == RESULT
    assert [each.id for each in new.runs.recover()] == ["b"]
    assert new.measurements.newest("a:b", "here").value == samples.RACE


def test_a_backup_does_not_go_over_rows(store, tmp_path):
    """Not by mistake: what is there has to be elsewhere first."""
    finished(store, "a")
    store.writer.flush()
    url = store.database.url.render_as_string(False)
    backup(url, tmp_path / "backup.gz")
    store.close()
    with pytest.raises(StoreError, match="holds rows already"):
        restore(url, tmp_path / "backup.gz")


def test_a_damaged_backup_restores_nothing(url, open_store, tmp_path):
    """A part of one looks like all of it to who does not know."""
    store = open_store(f"sqlite:///{tmp_path / 'store.sqlite'}")
    finished(store, "a")
    store.writer.flush()
    file = tmp_path / "backup.gz"
    backup(f"sqlite:///{tmp_path / 'store.sqlite'}", file)
    whole = file.read_bytes()
    lines = gzip.decompress(whole).splitlines(keepends=True)
    for damaged in (
        whole[: len(whole) // 2],
        gzip.compress(b"".join(lines[:-1])),
        gzip.compress(b"".join(lines[:3] + lines[4:])),
        gzip.compress(lines[0] + b'{"no": "row"}'),
        b"no gzip",
        gzip.compress(b"[]"),
        gzip.compress(b""),
    ):
        file.write_bytes(damaged)
        with pytest.raises(StoreError, match="nothing was restored"):
            restore(url, file)
    file.write_bytes(whole)
    restore(url, file)
    assert open_store(url).runs.get("a").value == RESULT


def test_purge_deletes_what_is_old(store):
    """Runs that have ended, measurements, who has not been here; nothing else."""
    now = time.time()
    for run_id, days in (("old", 31), ("new", 29)):
        finished(store, run_id, run_id)
        store.measurements.keep(run_id, 1, machine="", measured_at=now - 86400 * days)
    store.runs.queue("waits", "waits", RUN, (CONFIG,))

    def age(connection):
        day = now - 31 * DAY_SECONDS
        old = tables.runs.c.id.in_(("old", "waits"))
        connection.execute(tables.runs.update().where(old).values(submitted=day))
        connection.execute(tables.visitors.update().values(seen=day))

    store.writer.write(age)
    assert purge(store, 30) == 3
    assert {each.id for each in store.runs.find()} == {"new", "waits"}
    assert store.visitors.get("old") is None
    assert store.visitors.get("new")
    assert store.visitors.get("waits")
    assert store.measurements.newest("old", "") is None
    assert store.measurements.newest("new", "")
    assert purge(store, 30) == 0


def test_a_file_shrinks_when_much_is_deleted(file_url, open_store):
    """Purging is what one does when the disk is full."""
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
        said = capsys.readouterr()
        assert not (said.out and said.err)
        return status, said.out or said.err

    return call


def test_the_commands_do_what_they_say(file_url, open_store, tmp_path, command):
    """In a line each."""
    env = {**os.environ, "DATABASE_URL": file_url}
    assert "is up to date" in python("-m", "core.store", "upgrade", env=env).stdout
    store = open_store(file_url)
    finished(store, "a")
    store.writer.flush()
    file, new = str(tmp_path / "b.gz"), f"sqlite:///{tmp_path / 'new.sqlite'}"
    assert command(file_url, "backup", file) == (0, f"7 rows are in {file}.\n")
    assert command(new, "restore", file) == (0, "7 rows were restored.\n")
    purged = command(new, "purge", "--older-than-days", "0")
    assert purged == (0, "2 rows were deleted.\n")


@pytest.mark.parametrize(
    ("url", "arguments", "why"),
    [
        ("mysql://host/x", ["upgrade"], "Runs can't be kept in mysql://host/x"),
        ("sqlite:////none/x", ["backup", "b"], "There is no database at /none/x."),
        ("sqlite:////proc/none/x", ["upgrade"], "can't be used: "),
        ("sqlite:///x", ["restore", "/none"], "/none can't be read: No such file"),
        ("sqlite:///x", ["purge", "--older-than-days", "-1"], "is no number of days"),
        ("sqlite:///x", ["purge"], "--older-than-days"),
        ("sqlite:///x", [], "command"),
    ],
)
def test_a_command_that_fails_says_why_in_one_line(url, arguments, why, command):
    """And its exit status is 2."""
    status, said = command(url, *arguments)
    assert status == 2
    assert why in said
    assert said.startswith("python -m core.store")
    assert said.count("\n") == 1


def test_a_command_does_not_write_beside_the_app(
    file_url, open_store, tmp_path, command
):
    """It could damage the file; a backup only reads."""
    open_store(file_url)
    status, said = command(file_url, "purge", "--older-than-days", "1")
    assert status == 2
    assert "Another app keeps its runs in" in said
    assert said.count("\n") == 1
    assert command(file_url, "backup", str(tmp_path / "b.gz"))[0] == 0
