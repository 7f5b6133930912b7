"""Upgrades keep all rows.

today.sqlite.gz was written by the app of revision 0007. Five of its measurements are
those of tests/samples.py, and its weights are rounded. with_addresses.sqlite.gz was
written by the app of revision 0009, whose rows have the addresses of classes and
functions. Each kind of job is in it; weights are rounded there, too, and traces cut.
"""

import ast
import gzip
import json
import math
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from core import registry
from core.config import RunConfig
from core.jobs.history import History
from core.jobs.job import outcome_of
from core.results import RunResult
from core.store import codec, database
from core.store.addresses import with_names
from core.store.backup import backup, restore
from core.store.codec import StoreError
from core.store.database import MIGRATIONS, Database, words
from core.store.migrations.versions.v0008_settings import MODULE_OF, renamed
from core.store.store import Store
from core.store.tables import Row
from tests.app.store.made_up import RESULT, finished, queue
from tests.process import ROOT

SAME = (
    *("id", "seq", "visitor", "class_id", "lane", "round", "status", "message", "step"),
    *("submitted", "started", "ended", "accuracy", "r2", "seconds", "name", "hidden"),
)


def unpacked(name: str, folder: Path) -> Path:
    packed = Path(__file__).with_name(f"{name}.sqlite.gz")
    path = folder / f"{name}.sqlite"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


@pytest.fixture
def today(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    yield from rows_of(unpacked("today", tmp_path))


@pytest.fixture
def with_addresses(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    yield from rows_of(unpacked("with_addresses", tmp_path))


def rows_of(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    yield connection
    connection.close()


@pytest.fixture
def upgraded(url: str, tmp_path: Path, open_store) -> Store:
    fill(url, unpacked("today", tmp_path))
    return open_store(url)


@pytest.fixture
def named(url: str, tmp_path: Path, open_store) -> Store:
    """The store of revision 0009 after the upgrade."""
    fill(url, unpacked("with_addresses", tmp_path))
    return open_store(url)


def fill(url: str, path: Path) -> None:
    """Copy a file's tables and rows to an empty database."""
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


NOT_RUNS = {"browser_gpu", "evaluation", "mistakes", "pace"}  # nobody's row has them
QUEUED = RunConfig(
    task="regression", model="simple", criterion="gaussian", epochs=1, seed=3
)
# An answer that looks like the row of a class.
LIKE_A_CLASS = {
    "class": "core.config:RunConfig",
    "x": ('{"class": "core.config:RunConfig", "value": 1}', math.nan),
}
# Fields that today's version had not.
ADDED = {"item_each_step", "traffic", "cards", "waited", "counts", "percent", "again"}
ADDED |= {"half", "label_smoothing", "dropout", "normalize", "mirror"}
ADDED |= {"own_processors", "others_share", "took_turns"}


def is_kept(value: Any, text: str) -> bool:
    """Whether a row's old text says the same as a value, but for newer fields."""

    def same(new: Any, old: Any) -> bool:
        if isinstance(new, dict):
            names = new.keys() - ADDED
            return all(name in old and same(new[name], old[name]) for name in names)
        if isinstance(new, list):
            return len(new) == len(old) and all(map(same, new, old))
        return new == old

    texts = codec.dumps(value), with_names(renamed(text))
    trees = (json.loads(text, parse_constant=str) for text in texts)
    return same(*trees)


def test_every_run_of_today_opens_as_it_was(today, upgraded):
    query = "SELECT runs.*, value, details.started AS start FROM runs LEFT JOIN details"
    statuses = set()
    for row in today.execute(f"{query} ON id = run_id"):
        stored = upgraded.runs.get(row["id"])
        run = stored.summary
        assert [getattr(run, name) for name in SAME] == [row[name] for name in SAME]
        assert run.address == renamed(row["address"])
        assert is_kept(stored.arguments, row["arguments"])
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
            assert is_kept(stored.value, row["value"])
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
        assert upgraded.measurements.newest_ids(kind, row["machine"]) == [row["id"]]
        measurement = upgraded.measurements.get(row["id"])
        assert is_kept(measurement.value, row["value"]), kind
        assert is_kept(measurement.provenance, row["provenance"]), kind


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


def test_every_run_with_addresses_opens_as_it_was(with_addresses, named):
    jobs = Counter[str]()
    for row in with_addresses.execute("SELECT * FROM runs"):
        stored = named.runs.get(row["id"])
        run = stored.summary
        names = (*SAME, "address", "device_name", "parameters", "withheld")
        assert [getattr(run, name) for name in names] == [row[name] for name in names]
        assert is_kept(stored.arguments, row["arguments"])
        assert run.settings == json.loads(row["settings"] or "null")
        assert run.changes == json.loads(row["changes"] or "null")
        if row["start"]:
            assert is_kept(stored.progress.started, row["start"])
        if row["fit"]:
            assert is_kept(stored.progress.fit, row["fit"])
        query = "SELECT value FROM epochs WHERE run_id = ? ORDER BY epoch"
        texts = [text for (text,) in with_addresses.execute(query, [row["id"]])]
        assert len(texts) == len(stored.progress.history)
        assert all(map(is_kept, stored.progress.history, texts))
        value = stored.value
        if isinstance(value, RunResult):
            assert value.checkpoint == named.runs.checkpoint(row["id"]) != b""
            value = replace(value, history=(), losses=(), checkpoint=b"")
        assert is_kept(value, row["value"] or codec.dumps(None))
        jobs[registry.name_of_job(row["address"])] += 1
    assert set(jobs) == set(registry.JOBS) - NOT_RUNS
    assert [run.summary.status for run in named.runs.recover()] == ["queued"] * 8


def test_every_other_row_with_addresses_opens_as_it_was(with_addresses, named):
    kinds = set()
    for row in with_addresses.execute("SELECT * FROM measurements"):
        measurement = named.measurements.get(row["id"])
        assert measurement.kind == row["kind"]
        assert is_kept(measurement.value, row["value"])
        assert is_kept(measurement.provenance, row["provenance"])
        newest_ids = named.measurements.newest_ids(row["kind"], row["machine"])
        kinds |= {row["kind"]} if newest_ids == [row["id"]] else set()
    assert len(kinds) == 18
    for row in with_addresses.execute("SELECT * FROM answers"):
        answers = named.answers.of(row["visitor"])
        assert is_kept(answers[row["question"]], row["value"])
    (row,) = with_addresses.execute("SELECT * FROM classes")
    (classroom,) = named.classes.all()
    assert is_kept(classroom.rules, row["rules"])
    names = {member.name for member in named.classes.members(classroom.id)}
    assert len(names) == 2
    assert "Ada" in names


def test_a_job_that_waits_with_addresses_runs_after_the_upgrade(named):
    waiting = [job for job, _ in History(named).recover()]
    training = next(j for j in waiting if j.arguments[0] == QUEUED)
    outcome = outcome_of(training.address, training.arguments)
    assert outcome.message == ""
    assert outcome.value.config == training.arguments[0]


def module_paths(store: Store) -> list[tuple[str, str]]:
    """The column and the text of all texts that name a module of the app."""
    metadata, found = sa.MetaData(), list[tuple[str, str]]()
    with store.database.readers.connect() as connection:
        metadata.reflect(connection)
        for table in metadata.sorted_tables:
            for row in connection.execute(table.select()).mappings():
                texts = {str(name): str(value) for name, value in row.items()}
                found += [
                    (f"{table.name}.{name}", text)
                    for name, text in texts.items()
                    if re.search(r"\bcore\.\w", text)
                ]
    return found


def test_only_what_people_wrote_names_modules_after_the_upgrade(named):
    assert sorted(module_paths(named)) == [
        ("answers.value", codec.dumps(LIKE_A_CLASS)),
        ("runs.name", "core.training:run is the best"),
    ]


def test_what_is_stored_anew_names_no_modules(named, open_store, tmp_path):
    """Each kind of job, measurement, and answer is written again, by this version."""
    new = open_store(f"sqlite:///{tmp_path / 'anew' / 'store.sqlite'}")
    for row in named.runs.find(hidden=True):
        stored = named.runs.get(row.id)
        queue(new, row.id, "ada", *stored.arguments, address=row.address, lane=row.lane)
        new.runs.begin(row.id)
        if stored.progress.started:
            new.runs.started(row.id, stored.progress.started)
            new.runs.progress(row.id, 1, stored.progress.losses, stored.progress.fit)
        for epoch in stored.progress.history:
            new.runs.epoch(row.id, epoch)
        if row.status != "running":
            new.runs.end(row.id, row.status, stored.value, row.message)
        for measurement in named.measurements.of(row.visitor):
            value, provenance = measurement.value, measurement.provenance
            more = dict(machine="here", provenance=provenance, visitor="ada")
            new.measurements.keep(measurement.kind, value, **more)
        for question, answer in named.answers.of(row.visitor).items():
            if question != "weird":
                new.answers.keep("ada", question, answer)
    new.classes.create("Physics", 30, named.classes.all()[0].rules)
    new.writer.flush()
    assert {run.address for run in new.runs.find()} >= {registry.JOBS["race"]}
    assert len(new.measurements.of("ada")) > 10
    assert module_paths(new) == []


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
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert str(caught.value) == words("other_version", where=store.database.where)


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "0012"

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
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert str(caught.value) == words("other_version", where=upgraded.database.where)
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
