"""The database: its address, its connections, its one writing app, its upgrades.

By default, the database is a SQLite file in data/; DATABASE_URL may name a Postgres
database. Readers have a small pool of connections; the only connection that writes
belongs to core.store.writer.
"""

import math
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from filelock import FileLock, Timeout
from sqlalchemy.dialects.postgresql import REGCLASS
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.folders import DATA
from core.store.codec import StoreError
from core.store.tables import Row
from to_device.words import Words

DEFAULT = f"sqlite:///{DATA / 'to-device.sqlite'}"
MIGRATIONS = Path(__file__).parent / "migrations"

READERS = 8  # connections; a reader that finds all of them busy waits for milliseconds
READ_SECONDS = 5.0  # a database that answers no reader for so long hangs
BUSY_SECONDS = 2.0  # a write gives up on a locked SQLite file after this time
CONNECT_SECONDS = 5
SILENT_MILLISECONDS = 10_000  # a server that is silent for longer counts as lost
OWNER_SECONDS = 10.0  # time for Postgres to notice that the previous app was killed
OWNER = 0x70_DE_71_CE  # the Postgres advisory lock that the writing app holds
# So much of the disk has to be free, whichever is less. It is enough for 250 runs, and
# for the journal while many rows are deleted.
LEAST_SHARE, LEAST_BYTES = 0.05, 100_000_000

T = TypeVar("T")
words = Words(__file__)


@dataclass(frozen=True)
class Room:
    """Bytes: of the whole disk, and of what the database can still write."""

    total: float
    free: float

    @property
    def needed(self) -> float:
        """How much has to be free so that the app can go on."""
        return min(LEAST_SHARE * self.total, LEAST_BYTES)


class GoneError(Exception):
    """The database file was moved or deleted while it was open."""


def address(text: str | None = None) -> sa.URL:
    """The address in `text`, else in DATABASE_URL, else that of the file in data/.

    Raises StoreError for anything but the address of a SQLite file or of Postgres.
    """
    try:
        url = sa.make_url(text or os.environ.get("DATABASE_URL") or DEFAULT)
        if url.drivername in ("postgres", "postgresql"):  # as hosting services write it
            url = url.set(drivername="postgresql+psycopg")
        url.get_dialect()
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ValueError):
        raise StoreError(words("address.wrong")) from None
    kind = url.get_backend_name()
    in_memory = kind == "sqlite" and url.database in (None, "", ":memory:")
    if kind not in ("sqlite", "postgresql") or in_memory:
        raise StoreError(
            f"Runs can't be saved in {url!r}. Use "
            "sqlite:///folder/file or "
            "postgresql://user:password@host/database."
        )
    return url


class Database:
    def __init__(self, url: str | None = None) -> None:
        self.url = address(url)
        self.is_file = self.url.get_backend_name() == "sqlite"
        self.where = self.url.render_as_string(hide_password=True)
        self._owner: FileLock | None = None
        self._stuck: Future | None = None  # the newest read that waited for too long
        self._answered = 0.0  # time.monotonic() when a read ended last
        self._closed = False
        self._inode = 0  # identifies the open file; 0 if none is open
        if self.is_file:
            self.path = Path(str(self.url.database)).absolute()
            self.where = str(self.path)
            options: dict[str, Any] = {"creator": self.open_file}
        else:
            options = {
                "pool_pre_ping": True,  # the server may have been restarted
                "connect_args": {
                    "connect_timeout": CONNECT_SECONDS,
                    "tcp_user_timeout": SILENT_MILLISECONDS,
                    "application_name": "to-device",
                },
            }
        self.readers = sa.create_engine(
            self.url,
            poolclass=sa.QueuePool,
            pool_size=READERS,
            max_overflow=0,
            **options,
        )
        self.writer = sa.create_engine(self.url, poolclass=sa.NullPool, **options)
        if self.is_file:
            _begin_with(self.readers, "BEGIN", "PRAGMA query_only = ON")
            # Deleted data is overwritten, not just marked as free.
            _begin_with(self.writer, "BEGIN IMMEDIATE", "PRAGMA secure_delete = ON")
        else:
            sa.event.listen(self.readers, "connect", _make_read_only)

    def open_file(self) -> sqlite3.Connection:
        """Open the SQLite file. Raises sqlite3.Error if it is missing."""
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

    def own(self, upgrade: bool = True) -> sa.Connection:
        """Become the one app that writes; returns the connection to write with.

        Raises StoreError if another app writes already, or the database can't be used.
        """
        connection = None
        try:
            if self.is_file:
                self._own_file()
            connection = self.connect()
            if upgrade:
                self.upgrade(connection)
            return connection
        except Exception as error:
            if connection is not None:
                connection.close()
            self.close()
            if not isinstance(error, OSError | sqlite3.Error | sa.exc.SQLAlchemyError):
                raise
            why = str(getattr(error, "orig", error)).strip().partition("\n")[0]
            raise StoreError(
                f"The database {self.where} can't be used: {why}. Fix that "
                "problem, or set DATABASE_URL to another database."
            ) from error

    def _own_file(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock", mode=0o600)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            raise StoreError(words("two_apps", where=self.where)) from None
        self._owner = lock
        # No other user may read the file: it has the codes that visitors log in with.
        # Whoever may read the lock may hold it, too.
        self.path.touch(0o600)
        beside = self.path.parent.glob(f"{self.path.name}[-.]*")
        for file in (self.path, *beside):
            with suppress(OSError):  # it belongs to another user, or is gone already
                file.chmod(0o600)
        self._inode = self.path.stat().st_ino
        connection = self.open_file()
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # `erase` needs this
        connection.execute("PRAGMA journal_mode = WAL")  # readers don't wait for writes
        connection.close()

    def connect(self) -> sa.Connection:
        """Open the connection that writes.

        Raises SQLAlchemy's errors, GoneError, and StoreError if another app writes;
        `cause` explains each of them.
        """
        self.check()
        connection = self.writer.connect()
        if not self.is_file:
            deadline = time.monotonic() + OWNER_SECONDS
            while not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(OWNER))):
                if time.monotonic() > deadline:
                    connection.close()
                    raise StoreError(words("two_apps", where=self.where))
                time.sleep(0.2)
            connection.commit()  # keeps the lock, which lasts as long as the connection
        return connection

    def check(self) -> None:
        """Raise GoneError if the open file was moved or deleted.

        SQLite would still write to this file, which nobody would read.
        """
        if self._inode:
            try:
                inode = self.path.stat().st_ino
            except OSError:
                inode = 0
            if inode != self._inode:
                raise GoneError

    def read(self, work: Callable[[Session], T], is_long: bool = False) -> T:
        """What `work` reads, in one transaction, so that all rows are of one moment.

        Raises StoreError if the database does not answer. If it hangs, the first
        readers wait READ_SECONDS for it, and the others don't wait. A read that may
        take long is waited for until `close`, and doesn't tell whether it hangs.
        """
        if self.hangs:
            raise StoreError(words("unreadable"))
        reading: Future[T] = Future()
        # In a thread, since nothing ends a read from a disk that does not answer. It is
        # a daemon, so that the server can stop meanwhile.
        thread = threading.Thread(target=self._read, args=(work, reading), daemon=True)
        thread.start()
        while True:
            try:
                return reading.result(READ_SECONDS)
            except TimeoutError:
                if reading.done():
                    return reading.result()
                if time.monotonic() < self._answered + READ_SECONDS:
                    continue  # the database answers others: it has much to do
                if is_long:
                    if not self._closed:
                        continue
                    raise StoreError(words("unreadable")) from None
                self._stuck = reading
                raise StoreError(words("unreadable")) from None

    @property
    def hangs(self) -> bool:
        """Whether a read has waited for too long, and has no answer yet."""
        return self._stuck is not None and not self._stuck.done()

    def _read(self, work: Callable[[Session], T], reading: "Future[T]") -> None:
        try:
            with self.readers.connect() as connection, Session(connection) as session:
                result = work(session)
        except sa.exc.SQLAlchemyError as error:
            unreadable = StoreError(words("unreadable"))
            unreadable.__cause__ = error
            reading.set_exception(unreadable)
        except BaseException as error:
            reading.set_exception(error)
        else:
            reading.set_result(result)
        self._answered = time.monotonic()

    def upgrade(self, connection: sa.Connection) -> None:
        """Make the tables, or migrate them in one transaction. Raises StoreError."""
        settings = Config(attributes={"connection": connection})
        settings.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        settings.set_main_option("path_separator", "os")
        # A migration drops a table to rebuild it. With foreign keys on, SQLite would
        # then delete all rows that point to the table.
        self._foreign_keys(connection, "OFF")
        try:
            with connection.begin():
                if sa.inspect(connection).has_table("alembic_version"):
                    command.upgrade(settings, "head")
                else:
                    Row.metadata.create_all(connection, checkfirst=False)
                    command.stamp(settings, "head")
                if self.is_file:
                    broken = connection.exec_driver_sql("PRAGMA foreign_key_check")
                    if broken.first() is not None:
                        raise StoreError(f"The upgrade of {self.where} lost rows.")
        except CommandError:
            raise StoreError(words("other_version", where=self.where)) from None
        finally:
            self._foreign_keys(connection, "ON")

    def used_bytes(self, enough: float = 0.0) -> int:
        """How many bytes the rows take, without room that is free again.

        A server's database that takes less than `enough` with that room is not looked
        at any closer, since this reads all rows. Raises StoreError.
        """
        work = _used_pages if self.is_file else partial(_used_values, enough)
        return self.read(work, is_long=True)

    def size_of(
        self, session: Session, key: InstrumentedAttribute[Any], values: list[str]
    ) -> int:
        """About how many bytes the rows with these keys take, with all that they own.

        They own the rows that are deleted with them.
        """
        column = key.class_.__table__.c[key.name]
        owned = [
            foreign.parent
            for table in Row.metadata.tables.values()
            for foreign in table.foreign_keys
            if foreign.column is column and foreign.ondelete == "CASCADE"
        ]
        size = sa.func.length if self.is_file else sa.func.pg_column_size
        return sum(
            _size(session, column.table, size, column.in_(values))
            for column in (column, *owned)
        )

    def room(self) -> Room:
        """The room on the disk, and in the file. Raises StoreError.

        A server's disk can't be seen from here.
        """
        if not self.is_file:
            return Room(math.inf, math.inf)
        try:
            disk = shutil.disk_usage(self.path.parent)
        except OSError:  # the disk is away
            return Room(math.inf, math.inf)
        return Room(disk.total, disk.free + self.read(_free_pages))

    def erase(self, connection: sa.Connection) -> None:
        """Remove deleted data from the file and its journal, which shrink.

        If the disk is nearly full, the file keeps its room, with zeros in it: others
        would take the room, and the next runs would find none.
        """
        if self.is_file:
            # The rows are deleted already.
            with suppress(sqlite3.Error, OSError):
                disk = shutil.disk_usage(self.path.parent)
                if disk.free > Room(disk.total, disk.free).needed:
                    # As a script, since one step of this pragma frees only one page.
                    _driver(connection).executescript("PRAGMA incremental_vacuum")
                _driver(connection).execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _foreign_keys(self, connection: sa.Connection, switch: str) -> None:
        """Switch SQLite's foreign-key checks "ON" or "OFF", outside of transactions."""
        if self.is_file:
            _driver(connection).execute(f"PRAGMA foreign_keys = {switch}")

    def close(self) -> None:
        self._closed = True
        self.readers.dispose()
        self.writer.dispose()
        if self._owner is not None:
            self._owner.release()


LOST = words("causes.lost")
# The keys are SQLite's primary result codes, and Postgres's codes; the values are keys
# in the table "causes" of words.toml.
CAUSES: dict[int | str | None, str] = {
    **dict.fromkeys((sqlite3.SQLITE_FULL, "53100"), "full"),
    **dict.fromkeys((sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM), "read_only"),
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "busy"),
    **dict.fromkeys((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB), "damaged"),
    "25006": "read_only",
    sqlite3.SQLITE_IOERR: "disk",
    sqlite3.SQLITE_CANTOPEN: "closed",
    sqlite3.SQLITE_NOMEM: "memory",
}


def cause(error: Exception) -> str:
    """Why the database takes no writes; "" if only this one write is wrong."""
    causes = words.table("causes")
    if isinstance(error, GoneError):
        return causes["gone"]
    if isinstance(error, StoreError):
        return causes["two_apps"]
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error):
        code = getattr(original, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return causes.get(CAUSES.get(code), "")
    if name := CAUSES.get(getattr(original, "sqlstate", None)):
        return causes[name]
    is_lost = isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)
    return LOST if is_lost else ""


def _used_pages(session: Session) -> int:
    return _pages(session, "page_count") - _free_pages(session)


def _free_pages(session: Session) -> int:
    return _pages(session, "freelist_count")


def _pages(session: Session, count: str) -> int:
    """How many bytes so many of a SQLite file's pages have."""
    number, size = (
        session.execute(sa.text(f"PRAGMA {name}")).scalar_one()
        for name in (count, "page_size")
    )
    return number * size


def _used_values(enough: float, session: Session) -> int:
    """The sizes of all values as Postgres stores them.

    If all tables take less than `enough` with their indexes and free room, their size.
    """
    tables = Row.metadata.tables.values()
    taken = sum(
        session.execute(
            sa.select(sa.func.pg_total_relation_size(sa.cast(table.name, REGCLASS)))
        ).scalar_one()
        for table in tables
    )
    if taken < enough:
        return taken
    return sum(_size(session, table, sa.func.pg_column_size) for table in tables)


def _size(
    session: Session,
    table: sa.Table | sa.FromClause,
    size: Callable[..., Any],
    *conditions: sa.ColumnElement[bool],
) -> int:
    """The total size of the values in some of a table's rows."""
    sums = (sa.func.sum(size(column)) for column in table.columns)
    return sum(filter(None, session.execute(sa.select(*sums).where(*conditions)).one()))


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's own connection, for statements outside of transactions."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _begin_with(engine: sa.Engine, begin: str, pragma: str) -> None:
    """Begin SQLite's transactions ourselves, since the driver begins them too late."""

    @sa.event.listens_for(engine, "connect")
    def set_pragma(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(pragma)

    @sa.event.listens_for(engine, "begin")
    def begin_transaction(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)


def _make_read_only(connection: Any, _record: object) -> None:
    """Make a Postgres connection read-only; each transaction sees a single moment."""
    connection.read_only = True
    connection.isolation_level = 3  # psycopg's number for REPEATABLE READ
