"""Failures of a database, which last as long as their `with`."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy
from sqlalchemy import event, text

from core.store import database

END_OTHERS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@contextmanager
def with_pragma(store, pragma: str, after: str) -> Iterator[None]:
    switch = {"pragma": pragma}

    @event.listens_for(store.database.writer, "connect")
    def connected(connection, _record):
        connection.execute(switch["pragma"])

    store.writer.write(lambda session: session.execute(text(pragma)))
    yield
    switch["pragma"] = after


@contextmanager
def disk_full(store, _server) -> Iterator[None]:
    with with_pragma(
        store, "PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823"
    ):
        yield


@contextmanager
def read_only(store, _server) -> Iterator[None]:
    with with_pragma(store, "PRAGMA query_only = ON", "PRAGMA query_only = OFF"):
        yield


@contextmanager
def locked(store, _server) -> Iterator[None]:
    """Another program holds the file, without our lock."""
    other = sqlite3.connect(store.database.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    yield
    other.close()


@contextmanager
def moved(store, _server) -> Iterator[None]:
    """The folder is gone, as when a disk is unplugged."""
    folder = store.database.path.parent
    aside = folder.rename(folder.with_name("elsewhere"))
    try:
        yield
    finally:
        aside.rename(folder)


@contextmanager
def stopped(_store, server) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


@contextmanager
def as_admin(server, store) -> Iterator[sqlalchemy.Connection]:
    url = database.address(server.url(store.database.url.database))
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


@contextmanager
def server_read_only(store, server) -> Iterator[None]:
    """A standby, or a database whose host was not paid."""
    name = store.database.url.database
    alter = f"ALTER DATABASE {name} SET default_transaction_read_only"
    with as_admin(server, store) as connection:
        connection.exec_driver_sql(f"{alter} = on")
        connection.execute(END_OTHERS)
        yield
        connection.exec_driver_sql("SET default_transaction_read_only = off")
        connection.exec_driver_sql(f"{alter} = off")


@contextmanager
def server_full(store, server) -> Iterator[None]:
    with as_admin(server, store) as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER no_space BEFORE INSERT OR UPDATE ON runs "
            "EXECUTE FUNCTION no_space()"
        )
        yield
        connection.exec_driver_sql("DROP TRIGGER no_space ON runs")
