"""Backup, restore, purge: what whoever runs the app does now and then.

A backup is a gzipped text of JSON lines, the same of both databases, so that it also
moves from one to the other: a head with the revision, a line a row, the number of rows.
"""

import base64
import gzip
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, MetaData, Table, delete, inspect, select, text

from core.store.codec import StoreError
from core.store.database import Database
from core.store.runs import GOING_ON
from core.store.store import Store
from core.store.tables import measurements, runs, visitors

FORMAT = 1  # of backups
ROWS = 200  # read and written at once; a checkpoint has half a megabyte
DAY_SECONDS = 86_400.0


def backup(url: str | None, path: Path) -> int:
    """Write all rows of one moment to a file, also while the app runs; how many.

    The file is whole or not there. Raises StoreError.
    """
    database = Database(url)
    if database.is_file and not database.path.exists():
        raise StoreError(f"There is no database at {database.where}.")
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with database.read() as connection, _private(aside) as file:
            number = 0
            for line in _lines(connection):
                file.write(json.dumps(line, default=_base64) + "\n")
                number += "row" in line
            file.write(json.dumps({"rows": number}) + "\n")
        aside.replace(path)
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}.") from None
    finally:
        aside.unlink(missing_ok=True)
        database.close()
    return number


def _private(path: Path) -> Any:
    """A gzipped text for this user only: codes to come back with are in it."""
    opened = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    return gzip.open(os.fdopen(opened, "wb"), "wt", compresslevel=1, encoding="utf-8")


def _lines(connection: Connection) -> Iterator[dict[str, Any]]:
    revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
    date = datetime.now(UTC).isoformat(timespec="seconds")
    yield {"format": FORMAT, "revision": revision, "date": date}
    for table in _tables(connection):
        found = connection.execution_options(yield_per=ROWS).execute(select(table))
        for row in found.mappings():
            yield {"table": table.name, "row": dict(row)}


def _tables(connection: Connection) -> list[Table]:
    """Those of the database as it is, each after those that it points to."""
    metadata = MetaData()
    metadata.reflect(connection)
    return [each for each in metadata.sorted_tables if each.name != "alembic_version"]


def restore(url: str | None, path: Path) -> int:
    """Fill an empty database from a backup, and upgrade it; how many rows.

    Raises StoreError where the file is damaged, or the database holds rows already.
    """
    database = Database(url)
    with _opened(path) as file:
        try:
            revision = _revision(file.readline(), path)
            with closing(database), closing(database.own(revision="")) as connection:
                with connection.begin():
                    _make_room(connection, database)
                database.upgrade(connection, revision)
                with connection.begin():
                    number = _fill(connection, file)
                database.upgrade(connection, "head")
        except (EOFError, OSError, KeyError, TypeError, ValueError, zlib.error) as why:
            raise StoreError(
                f"{path} is damaged, and nothing was restored: {why}."
            ) from None
    return number


def _opened(path: Path) -> Any:
    try:
        return gzip.open(path, "rt", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}.") from None


def _revision(line: str, path: Path) -> str:
    """The one of the database that was backed up, from the first line."""
    head = json.loads(line)
    if head["format"] != FORMAT:
        raise StoreError(f"{path} is of a version that this app does not know.")
    return head["revision"]


def _make_room(connection: Connection, database: Database) -> None:
    """The tables of an app that has started but never kept anything may go."""
    for table in reversed(_tables(connection)):
        if connection.execute(select(table).limit(1)).first() is not None:
            raise StoreError(
                f"{database.where} holds rows already. Restore into a new database, "
                "named in DATABASE_URL."
            )
        table.drop(connection)
    if inspect(connection).has_table("alembic_version"):
        connection.execute(text("DROP TABLE alembic_version"))


def _fill(connection: Connection, file: Any) -> int:
    """Insert the rows of a backup."""
    tables = {table.name: table for table in _tables(connection)}
    number, end = 0, None

    def rows() -> Iterator[tuple[str, dict[str, Any]]]:
        nonlocal end
        for line in file:
            read = json.loads(line, object_hook=_bytes)
            if "row" not in read:
                end = read["rows"]
                return
            yield read["table"], read["row"]

    for name, group in groupby(rows(), key=lambda each: each[0]):
        while batch := [row for _, row in islice(group, ROWS)]:
            connection.execute(tables[name].insert(), batch)
            number += len(batch)
    if number != end:
        raise ValueError("its end is missing")
    return number


def purge(store: Store, days: float) -> int:
    """Delete what is older: runs that have ended, measurements, visitors without runs.

    Answers how many rows of these went. Raises StoreError.
    """
    before = time.time() - days * DAY_SECONDS
    old = [
        delete(runs).where(runs.c.submitted < before, runs.c.status.not_in(GOING_ON)),
        delete(measurements).where(measurements.c.measured_at < before),
        delete(visitors).where(
            visitors.c.seen < before,
            ~select(runs.c.id).where(runs.c.visitor == visitors.c.id).exists(),
        ),
    ]

    def work(connection: Connection) -> int:
        return sum(connection.execute(each).rowcount for each in old)

    return store.writer.now(work, erases=True)


def _base64(value: Any) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


def _bytes(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value
