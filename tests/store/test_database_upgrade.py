"""core.store.database: upgrading keeps all rows, from whichever version."""

import shutil
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, LargeBinary, MetaData, Table

from core.store import database
from core.store.codec import StoreError
from core.store.database import MIGRATIONS, Database
from core.store.tables import METADATA
from tests.store.made_up import RESULT, finished

REVISIONS = [
    each.revision for each in ScriptDirectory(str(MIGRATIONS)).walk_revisions()
]


def reflected(connection: Connection) -> list[Table]:
    """The tables that are there, without Alembic's, each after those it points to."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [each for each in metadata.sorted_tables if each.name != "alembic_version"]


def sample(table: Table, number: int) -> dict:
    """A row of any table; the ones of the same number belong together."""
    row = {}
    for column in table.columns:
        kind = column.type.python_type
        if column.foreign_keys or (column.primary_key and kind is str):
            row[column.name] = f"row {number}"
        elif isinstance(column.type, LargeBinary):
            row[column.name] = bytes([number, 0, 255])
        else:
            row[column.name] = kind(number)
    return row


def rows(connection: Connection) -> dict[str, list[dict]]:
    """All that is in the database, by the names of its tables."""
    return {
        table.name: [dict(row._mapping) for row in connection.execute(table.select())]
        for table in reflected(connection)
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_upgrade_keeps_all_rows(url, open_store, revision):
    """From each revision that ever was."""
    old = Database(url)
    connection = old.own(revision)
    with connection.begin():
        for table in reflected(connection):
            for number in (1, 2):
                connection.execute(table.insert(), sample(table, number))
    before = rows(connection)
    assert len(before) >= 6
    connection.close()
    old.close()

    store = open_store(url)
    after = store.writer.write(rows).result
    for name, kept in before.items():
        assert len(kept) == 2
        for row in kept:
            assert any(row.items() <= each.items() for each in after[name])


@pytest.mark.parametrize(
    ("version", "setting", "was"),
    [
        ("0004", "non_blocking", True),  # what pinned memory meant until then
        ("0006", "host", ""),  # none had a choice of machines
    ],
)
def test_runs_of_before_have_what_became_a_setting(
    url, open_store, version, setting, was
):
    """What it was for all of them; other jobs say nothing."""
    old = Database(url)
    connection = old.own(version)
    with connection.begin():
        table = next(each for each in reflected(connection) if each.name == "runs")
        known = {each.name for each in table.columns}
        alone = dict.fromkeys({"visitor", "class_id"} & known)
        for row in (sample(table, 1), sample(table, 2) | {"task": None}):
            connection.execute(table.insert(), row | alone)
    connection.close()
    old.close()

    runs = open_store(url).writer.write(rows).result["runs"]
    assert {each["id"]: each[setting] for each in runs} == {"row 1": was, "row 2": None}


def test_the_migrations_end_in_the_tables(store):
    """What `alembic check` compares: nothing is left to migrate."""

    def difference(connection: Connection) -> list:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return compare_metadata(context, METADATA)

    assert store.writer.write(difference).result == []


def test_a_database_of_a_newer_version_is_left_alone(url, open_store):
    """Somebody went back to an older app."""
    store = open_store(url)
    newer = "UPDATE alembic_version SET version_num = '9999'"
    store.writer.write(lambda each: each.exec_driver_sql(newer))
    store.close()
    with pytest.raises(StoreError, match="A newer version of this app made"):
        open_store(url)


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", {before!r}

def upgrade():
    op.add_column("visitors", sa.Column("new", sa.String))
    with op.batch_alter_table("runs", recreate="auto") as batch:
        batch.alter_column("name", nullable=True)
    {last}
"""


def add_migration(monkeypatch: pytest.MonkeyPatch, folder: Path, last: str) -> None:
    """Have one more, which SQLite can only do by making the table of runs anew."""
    shutil.copytree(MIGRATIONS, folder)
    text = MIGRATION.format(before=REVISIONS[0], last=last)
    (folder / "versions" / "v9999.py").write_text(text)
    monkeypatch.setattr(database, "MIGRATIONS", folder)


def test_a_table_that_is_made_anew_keeps_what_points_to_it(
    url, open_store, tmp_path, monkeypatch
):
    """SQLite drops the old table, and would delete curves and checkpoints with it."""
    store = open_store(url)
    finished(store, "a")
    store.close()
    add_migration(monkeypatch, tmp_path / "migrations", "pass")
    store = open_store(url)
    assert store.runs.get("a").value == RESULT
    assert store.runs.delete(["a"], "me")
    assert store.runs.checkpoint("a") is None, "foreign keys hold again"


def test_an_upgrade_that_fails_changes_nothing(url, open_store, tmp_path, monkeypatch):
    """The app of before starts again, and has all."""
    store = open_store(url)
    finished(store, "a")
    store.close()
    with monkeypatch.context() as patch:
        add_migration(patch, tmp_path / "migrations", "1 / 0")
        with pytest.raises(ZeroDivisionError):
            open_store(url)
    store = open_store(url)
    assert store.runs.get("a").value == RESULT
    visitors = store.writer.write(rows).result["visitors"]
    assert "new" not in visitors[0]
