"""What tests of the store share: each of them runs on SQLite and on a real Postgres."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.store.store import Store
from tests.store.postgres import Postgres


@pytest.fixture
def server_url(postgres: Postgres) -> str:
    """The address of an empty database of the server."""
    return postgres.empty_database("store")


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'data' / 'store.sqlite'}"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database."""
    name = "file_url" if request.param == "sqlite" else "server_url"
    return request.getfixturevalue(name)


@pytest.fixture
def open_store() -> Iterator[Callable[[str], Store]]:
    """Opens stores, and closes them after the test."""
    opened: list[Store] = []

    def open_one(url: str) -> Store:
        opened.append(Store(url))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    """An open store on an empty database."""
    return open_store(url)
