"""Back up and restore the database: as a SQLite file, or as pg_dump's archive."""

import os
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, MetaData, select

from core.store.codec import StoreError
from core.store.database import Database


def backup(url: str | None, path: Path) -> None:
    """Write the database to a file; the app may run meanwhile.

    If the backup fails, it changes nothing at `path`, and raises StoreError.
    """
    database = Database(url)
    if database.is_file and not database.path.exists():
        raise StoreError(f"There is no database at {database.where}.")
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        # No other user may read the file: it has the codes that visitors log in with.
        aside.touch(0o600, exist_ok=False)
        if database.is_file:
            with closing(database.open_file()) as file:
                file.execute("VACUUM INTO ?", [str(aside)])
        else:
            _postgres(database, "pg_dump", "--format=custom", f"--file={aside}")
        aside.replace(path)
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror}.") from None
    except sqlite3.Error as error:
        raise StoreError(f"{database.where} can't be copied: {error}.") from None
    finally:
        with suppress(OSError):  # after a success, the file has its final name
            aside.unlink()


def restore(url: str | None, path: Path) -> None:
    """Fill an empty database from a backup of the same kind, and upgrade the database.

    Raises StoreError if the file is damaged, or the database holds rows already.
    """
    try:
        path.open("rb").close()
    except OSError as error:
        raise StoreError(f"{path} can't be read: {error.strerror}.") from None
    database = Database(url)
    with closing(database), closing(database.own(upgrade=False)) as connection:
        _check_empty(connection, database)
        try:
            if database.is_file:
                _copy(path, database.path)
            else:
                options = ("--clean", "--if-exists", "--no-owner", "--exit-on-error")
                _postgres(
                    database, "pg_restore", *options, "--single-transaction", str(path)
                )
        except (sqlite3.Error, StoreError) as error:
            why = str(error).rstrip(".")
            raise StoreError(f"Nothing was restored from {path}: {why}.") from None
        database.upgrade(connection)


def _check_empty(connection: Connection, database: Database) -> None:
    """Raise StoreError if any table has rows. A new app's tables have none."""
    metadata = MetaData()
    with connection.begin():
        metadata.reflect(connection)
        for table in metadata.sorted_tables:
            row = connection.execute(select(table).limit(1)).first()
            if row is not None and table.name != "alembic_version":
                raise StoreError(
                    f"{database.where} already has data. Restore into a new "
                    "database, and set DATABASE_URL to its address."
                )


def _copy(source: Path, target: Path) -> None:
    address = f"{source.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as old:
        if old.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise sqlite3.DatabaseError("the file is damaged")
        old.execute("SELECT version_num FROM alembic_version")
        with closing(sqlite3.connect(target)) as new:
            old.backup(new)


def _postgres(database: Database, tool: str, *arguments: str) -> None:
    """Run a Postgres client, which gets the password only from its environment."""
    url = database.url.set(drivername="postgresql")._replace(password=None)
    environment = dict(os.environ)
    if database.url.password is not None:
        environment["PGPASSWORD"] = str(database.url.password)
    try:
        process = subprocess.run(
            [tool, f"--dbname={url.render_as_string()}", *arguments],
            env=environment,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise StoreError(
            f"To copy a Postgres database, the app needs {tool}, which is "
            "not installed here. Install postgresql-client (on Debian), "
            f"or run {tool} on the database server."
        ) from None
    if process.returncode:
        why = process.stderr.strip().partition("\n")[0]
        raise StoreError(f"{tool} failed: {why}.")
