"""Upgrades keep all rows. today.sqlite.gz was written by the app of revision 0007.

Five of its measurements are those of tests/samples.py, and its weights are rounded.
"""

import ast
import gzip
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from core.config import RunConfig
from core.results import RunResult
from core.store import codec, database
from core.store.backup import backup, restore
from core.store.codec import StoreError
from core.store.database import MIGRATIONS, Database
from core.store.migrations.versions.v0008_settings import MODULE_OF, renamed
from core.store.store import Store
from core.store.tables import Row
from tests.app.store.made_up import RESULT, finished
from tests.process import ROOT

SAME = (
    *("id", "seq", "visitor", "class_id", "lane", "round", "status", "message", "step"),
    *("submitted", "started", "ended", "accuracy", "r2", "seconds", "name", "hidden"),
)
TODAY = gzip.decompress((Path(__file__).parent / "today.sqlite.gz").read_bytes())


@pytest.fixture
def today(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "today.sqlite"
    path.write_bytes(TODAY)
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


@pytest.fixture
def upgraded(url: str, tmp_path: Path, open_store) -> Store:
    path = tmp_path / "copy.sqlite"
    path.write_bytes(TODAY)
    if url.startswith("sqlite"):
        Database(url).path.parent.mkdir()
        shutil.copy(path, Database(url).path)
    else:
        old, new = sa.create_engine(f"sqlite:///{path}"), Database(url).writer
        metadata = sa.MetaData(naming_convention=Row.metadata.naming_convention)
        metadata.reflect(old)
        for table in metadata.tables.values():
            for column in table.columns:
                column.type, column.server_default = column.type.as_generic(), None
                if isinstance(column.type, sa.Float):
                    column.type = sa.Float(53)
        with old.connect() as source, new.begin() as target:
            metadata.create_all(target)
            for table in metadata.sorted_tables:
                for row in source.execute(table.select()):
                    target.execute(table.insert(), row._asdict())
        old.dispose()
    return open_store(url)


# Fields that today's version had not.
ADDED = {"item_each_step", "traffic", "cards", "waited", "counts", "percent", "again"}


def is_kept(value: Any, text: str) -> bool:
    """Whether a text says the same as a value, but for fields that are no more."""

    def same(new: Any, old: Any) -> bool:
        if isinstance(new, dict):
            names = new.keys() - ADDED
            return all(name in old and same(new[name], old[name]) for name in names)
        if isinstance(new, list):
            return len(new) == len(old) and all(map(same, new, old))
        return new == old

    trees = (json.loads(t, parse_constant=str) for t in (codec.dumps(value), text))
    return same(*trees)


def test_every_run_of_today_opens_as_it_was(today, upgraded):
    query = "SELECT runs.*, value, details.started AS start FROM runs LEFT JOIN details"
    statuses = set()
    for row in today.execute(f"{query} ON id = run_id"):
        stored = upgraded.runs.get(row["id"])
        run = stored.summary
        assert [getattr(run, name) for name in SAME] == [row[name] for name in SAME]
        assert run.address == renamed(row["address"])
        assert is_kept(stored.arguments, renamed(row["arguments"]))
        if row["task"] is None:
            assert run.settings is None
        else:
            assert stored.arguments == (RunConfig(**run.settings),)
            assert all(getattr(run, name) == row[name] for name in run.settings)
            assert run.settings.keys() == vars(RunConfig()).keys() - ADDED
            statuses.add(row["status"])
        if row["start"]:
            assert is_kept(stored.progress.started, row["start"])
        if not row["value"]:
            assert stored.value is None
        elif not isinstance(stored.value, RunResult):
            assert is_kept(stored.value, renamed(row["value"]))
    assert statuses == {"cancelled", "failed", "finished", "queued", "running"}


def test_the_curves_epochs_and_checkpoints_of_today_are_there(today, upgraded):
    checkpoints = today.execute("SELECT * FROM checkpoints").fetchall()
    assert len(checkpoints) == 2
    for run_id, state_dict in checkpoints:
        stored = upgraded.runs.get(run_id)
        assert stored.value.checkpoint == state_dict
        assert len(stored.progress.losses) == stored.summary.steps
        query = "SELECT value FROM epochs WHERE run_id = ? ORDER BY epoch"
        texts = [text for (text,) in today.execute(query, [run_id])]
        assert all(map(is_kept, stored.progress.history, texts))
        assert len(texts) == len(stored.progress.history) == 2
        assert stored.value.history == stored.progress.history


def test_every_measurement_of_today_is_found_under_its_kind(today, upgraded):
    rows = today.execute("SELECT * FROM measurements").fetchall()
    assert len(rows) == 16
    for row in rows:
        kind = renamed(row["kind"])
        assert is_defined(kind)
        assert upgraded.measurements.newest_id(kind, row["machine"]) == row["id"]
        measurement = upgraded.measurements.get(row["id"])
        assert is_kept(measurement.value, renamed(row["value"])), kind
        assert is_kept(measurement.provenance, renamed(row["provenance"])), kind


def test_the_answers_and_the_class_of_today_are_there(today, upgraded):
    for row in today.execute("SELECT * FROM answers"):
        assert is_kept(
            upgraded.answers.of(row["visitor"])[row["question"]], row["value"]
        )
    (row,) = upgraded.classes.all()
    assert (row.name, row.is_open, row.rules.epochs) == ("Physics", True, 20)
    (member,) = upgraded.classes.members(row.id)
    assert (member.name, member.runs) == ("Ada", 4)
    assert len(upgraded.classes.acts(row.id)) == 4
    assert len(upgraded.classes.runs(row.id)) == 26
    for row in today.execute("SELECT * FROM visitors"):
        assert upgraded.visitors.get(row["id"]).code == row["code"]


def test_the_jobs_that_wait_today_are_queued(upgraded):
    waiting = upgraded.runs.recover()
    assert [run.summary.id for run in waiting] == [f"queued {n}" for n in range(6)]
    addresses = (f"core.lessons.{module}:{name}" for name, module in MODULE_OF.items())
    assert is_defined(*(run.summary.address for run in waiting), *addresses)


def is_defined(*addresses: str) -> bool:
    """Whether all of them name functions and classes, without an import of torch."""
    for address in addresses:
        module, _, name = address.partition(":")
        tree = ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        if name not in {getattr(node, "name", "") for node in tree.body}:
            raise LookupError(address)
    return True


def difference(connection: sa.Connection) -> list:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return compare_metadata(context, Row.metadata)


def test_new_and_upgraded_databases_have_the_same_tables(upgraded):
    write = upgraded.writer.write(lambda session: difference(session.connection()))
    assert write.result == []


@pytest.mark.parametrize("version", ["9999", "0003"])
def test_a_database_of_an_unknown_version_is_left_alone(url, open_store, version):
    store = open_store(url)
    change = sa.text(f"UPDATE alembic_version SET version_num = '{version}'")
    store.writer.write(lambda session: session.execute(change))
    store.close()
    with pytest.raises(StoreError, match="made either by a newer version of this app"):
        open_store(url)


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "0009"

def upgrade():
    op.add_column("visitors", sa.Column("new", sa.String))
    with op.batch_alter_table("runs", recreate="auto") as batch:
        batch.alter_column("name", nullable=True)
    {last}
"""


def add_migration(monkeypatch: pytest.MonkeyPatch, folder: Path, last: str) -> None:
    """One more, for which SQLite has to make the table of runs anew."""
    shutil.copytree(MIGRATIONS, folder)
    (folder / "versions" / "v9999.py").write_text(MIGRATION.format(last=last))
    monkeypatch.setattr(database, "MIGRATIONS", folder)


def rows(store: Store) -> dict[str, list[str]]:
    metadata = sa.MetaData()
    with store.database.readers.connect() as connection:
        metadata.reflect(connection)
        return {
            table.name: sorted(
                repr([row[column] for column in table.columns if column.name != "new"])
                for row in connection.execute(table.select()).mappings()
            )
            for table in metadata.sorted_tables
            if table.name != "alembic_version"
        }


def test_an_update_keeps_everything_and_the_backup_leads_back(
    upgraded, url, other_url, open_store, tmp_path, monkeypatch
):
    before, file = rows(upgraded), tmp_path / "before-update"
    assert len(before["runs"]) > 3
    backup(url, file)
    upgraded.close()
    with monkeypatch.context() as next_version:
        add_migration(next_version, tmp_path / "migrations", "pass")
        newer = open_store(url)
        assert rows(newer) == before
        trained = next(r for r in newer.runs.find() if newer.runs.checkpoint(r.id))
        assert newer.runs.delete([trained.id], trained.visitor)
        assert newer.runs.checkpoint(trained.id) is None, "foreign keys hold again"
        newer.close()
    with pytest.raises(StoreError, match="made either by a newer version of this app"):
        open_store(url)
    restore(other_url, file)
    assert rows(open_store(other_url)) == before


def test_an_upgrade_that_fails_changes_nothing(url, open_store, tmp_path, monkeypatch):
    store = open_store(url)
    finished(store, "a")
    store.close()
    with monkeypatch.context() as patch:
        add_migration(patch, tmp_path / "migrations", "1 / 0")
        with pytest.raises(ZeroDivisionError):
            open_store(url)
    store = open_store(url)
    assert store.runs.get("a").value == RESULT
    columns = sa.text("SELECT * FROM visitors")
    names = store.writer.write(lambda session: session.execute(columns).keys()).result
    assert "new" not in names
