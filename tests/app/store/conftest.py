"""What tests of the store share: with `url` they run on SQLite and a real Postgres."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core.store.store import Store
from tests.app.store.postgres import Postgres, tool


@pytest.fixture
def server_url(postgres: Postgres) -> str:
    return postgres.empty_database("store")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest) -> str:
    name = "file_url" if request.param == "sqlite" else "server_url"
    return request.getfixturevalue(name)


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {os.path.dirname(path) for name in ["pg_dump"] if (path := tool(name))}
    monkeypatch.setenv("PATH", os.pathsep.join([*folders, os.environ["PATH"]]))


@pytest.fixture
def other_url(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if url.startswith("sqlite"):
        return f"sqlite:///{tmp_path / 'new' / 'store.sqlite'}"
    return request.getfixturevalue("postgres").empty_database("other")


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    return open_store(url)
