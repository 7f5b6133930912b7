"""The database: its address, its connections, who may write, how it is upgraded.

SQLite in data/ by default, Postgres where DATABASE_URL says so. Readers have a small
pool; the one connection that writes is core.store.writer's.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from filelock import FileLock, Timeout
from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    QueuePool,
    create_engine,
    event,
    make_url,
    text,
)
from sqlalchemy.exc import (
    ArgumentError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from core.store.codec import StoreError

ROOT = Path(__file__).parents[2]
DEFAULT = f"sqlite:///{ROOT / 'data' / 'to-device.sqlite'}"
MIGRATIONS = Path(__file__).parent / "migrations"

READERS = 8  # connections; whoever comes when all are busy waits for milliseconds
BUSY_SECONDS = 2.0  # until a locked SQLite file is called so
CONNECT_SECONDS = 5
SILENT_MILLISECONDS = 10_000  # until a server that says nothing is taken for lost
OWNER_SECONDS = 10.0  # for a server to notice that an app which was killed is gone
OWNER = 0x70_DE_71_CE  # the number of the advisory lock that stands for "the app"

FORMS = "sqlite:///folder/file or postgresql://user:password@host/database"
TWO_APPS = (
    "Another app keeps its runs in {where}, and only one can. Stop that one first, or "
    "give this one a database of its own in DATABASE_URL."
)


class GoneError(Exception):
    """The file that was opened is no longer where it was."""


def address(given: str | None = None) -> URL:
    """Where the database is: what is given, else DATABASE_URL, else the file in data/.

    Raises StoreError for what is no address of SQLite or Postgres.
    """
    given = given or os.environ.get("DATABASE_URL") or DEFAULT
    try:
        url = make_url(given)
        if url.drivername in ("postgres", "postgresql"):  # as hosts hand it out
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ValueError):
        raise StoreError(f"DATABASE_URL is no address: write {FORMS}.") from None
    kind = url.get_backend_name()
    in_memory = kind == "sqlite" and url.database in (None, "", ":memory:")
    if kind not in ("sqlite", "postgresql") or in_memory:
        raise StoreError(f"Runs can't be kept in {url!r}: write {FORMS}.")
    return url


class Database:
    """One database; `own` it before anything is written."""

    def __init__(self, url: str | None = None) -> None:
        self.url = address(url)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self.where = self.url.render_as_string(hide_password=True)
        self._owner: FileLock | None = None
        self._inode = 0  # of the file that was opened
        if self.is_file:
            self.path = Path(str(self.url.database)).absolute()
            self.where = str(self.path)
            options: dict[str, Any] = {"creator": self._open}
        else:
            options = {
                "pool_pre_ping": True,  # the server may have been restarted
                "connect_args": {
                    "connect_timeout": CONNECT_SECONDS,
                    "tcp_user_timeout": SILENT_MILLISECONDS,
                    "application_name": "to-device",
                },
            }
        self.readers = create_engine(
            self.url, poolclass=QueuePool, pool_size=READERS, max_overflow=0, **options
        )
        self.writer = create_engine(self.url, poolclass=NullPool, **options)
        if self.is_file:
            _begin_with(self.readers, "BEGIN", "PRAGMA query_only = ON")
            # Who deletes their data has it overwritten, not only marked as free.
            _begin_with(self.writer, "BEGIN IMMEDIATE", "PRAGMA secure_delete = ON")
        else:
            event.listen(self.readers, "connect", _only_read)

    def _open(self) -> sqlite3.Connection:
        """Open the file, which must be there: SQLite would make an empty one."""
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,  # SQLite's busy_timeout
            check_same_thread=False,
            isolation_level=None,  # SQLAlchemy begins transactions, not this driver
        )
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def own(self, revision: str = "head") -> Connection:
        """Be the one app that writes, and upgrade; the connection to write with.

        Without a revision nothing is upgraded. Raises StoreError where that can't be.
        """
        connection = None
        try:
            if self.is_file:
                self._own_file()
            connection = self.connect()
            if revision:
                self.upgrade(connection, revision)
            return connection
        except Exception as error:
            if connection is not None:
                connection.close()
            self.close()
            if not isinstance(error, OSError | sqlite3.Error | SQLAlchemyError):
                raise
            why = str(getattr(error, "orig", error)).strip().partition("\n")[0]
            raise StoreError(
                f"The database {self.where} can't be used: {why}. Fix that, or name "
                "another one in DATABASE_URL."
            ) from error

    def _own_file(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise StoreError(TWO_APPS.format(where=self.where)) from None
        self._owner = lock
        # Only the app's own user may read it: codes to come back with are in it.
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        self._inode = self.path.stat().st_ino
        connection = self._open()
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # see erase
        connection.execute("PRAGMA journal_mode = WAL")  # readers never wait
        connection.close()

    def connect(self) -> Connection:
        """The connection that writes. Raises what SQLAlchemy does, and StoreError."""
        self.check()
        connection = self.writer.connect()
        if not self.is_file:
            deadline = time.monotonic() + OWNER_SECONDS
            taken = text("SELECT pg_try_advisory_lock(:owner)").bindparams(owner=OWNER)
            while not connection.scalar(taken):
                if time.monotonic() > deadline:
                    connection.close()
                    raise StoreError(TWO_APPS.format(where=self.where))
                time.sleep(0.2)
            connection.commit()  # the lock is the connection's, and stays
        return connection

    def check(self) -> None:
        """GoneError where the file was moved: SQLite would go on writing to it there"""
        if self._inode:
            try:
                inode = self.path.stat().st_ino
            except OSError:
                inode = 0
            if inode != self._inode:
                raise GoneError

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection to read with, in one transaction: what is read fits together.

        Raises StoreError where the database does not answer.
        """
        try:
            with self.readers.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreError(
                "What was kept can't be read right now: the database does not answer. "
                "Try again in a minute."
            ) from error

    def upgrade(self, connection: Connection, revision: str) -> None:
        """Run the migrations up to a revision, all or none. Raises StoreError."""
        # A table that is rebuilt is dropped, which would take its children along.
        self._foreign_keys(connection, "OFF")
        try:
            with connection.begin():
                command.upgrade(migrations(connection), revision)
                if self.is_file:
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check")
                    if broken.first() is not None:
                        raise StoreError(f"The upgrade of {self.where} lost rows.")
        except CommandError:
            raise StoreError(
                f"A newer version of this app made the database {self.where}. Update "
                "the app, or name another database in DATABASE_URL."
            ) from None
        finally:
            self._foreign_keys(connection, "ON")

    def erase(self, connection: Connection) -> None:
        """Give the room of what was deleted back, and begin SQLite's journal anew."""
        if self.is_file:
            with suppress(sqlite3.Error):  # it is deleted; this is for the disk only
                # As a script: one step of this pragma frees one page.
                _driver(connection).executescript("PRAGMA incremental_vacuum")
                _driver(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _foreign_keys(self, connection: Connection, switch: str) -> None:
        """SQLite takes it only outside of a transaction."""
        if self.is_file:
            _driver(connection).execute(f"PRAGMA foreign_keys = {switch}")

    def close(self) -> None:
        """Close the readers, then let another app have it."""
        self.readers.dispose()
        self.writer.dispose()
        if self._owner is not None:
            self._owner.release()


FULL = "the disk is full"
READ_ONLY = "the database can only be read"
BUSY = "another program holds the database"
LOST = "the database does not answer"
DAMAGED = "the database is damaged; restore a backup"
FILE_CAUSES = {  # of SQLite's primary result codes
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_PERM: READ_ONLY,
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_IOERR: "the disk has an error",
    sqlite3.SQLITE_CANTOPEN: "the database file can't be opened",
    sqlite3.SQLITE_NOMEM: "the memory ran out",
}
SERVER_CAUSES = {"53100": FULL, "25006": READ_ONLY}  # of Postgres' error codes


def cause(error: Exception) -> str:
    """Why nothing can be written now; empty where only this one write is wrong."""
    if isinstance(error, GoneError):
        return "the database file is no longer where it was"
    if isinstance(error, StoreError):
        return "another app keeps its runs in the same database"
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        return FILE_CAUSES.get(getattr(original, "sqlite_errorcode", 1) & 0xFF, "")
    if state := SERVER_CAUSES.get(getattr(original, "sqlstate", None) or ""):
        return state
    return LOST if isinstance(error, OperationalError | InterfaceError) else ""


def migrations(connection: Connection) -> Config:
    """Alembic's settings, for the database behind a connection."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _driver(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection, for what SQLite takes outside of transactions."""
    found = connection.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found


def _begin_with(engine: Engine, begin: str, pragma: str) -> None:
    """Transactions of a SQLite engine, which its driver would begin too late."""

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(pragma)

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql(begin)


def _only_read(connection: Any, _record: object) -> None:
    """What is read in one transaction is of one moment, and nothing is written."""
    connection.read_only = True
    connection.isolation_level = 3  # repeatable read, as psycopg counts them
