"""What tests share: the one engine, and when tests are skipped.

It imports only torch and pytest at once: a machine with a GPU may have no more.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from core.data import fashion_mnist
from to_device.sim import simulation
from tools.server import CHROMIUM

if TYPE_CHECKING:
    from core.jobs.engine import Engine
    from core.store.store import Store
    from tests.app.store.postgres import Postgres

# What helpers assert is explained as what tests assert is.
pytest.register_assert_rewrite("tests.app.pages.walk", "tests.app.e2e.walk")

with suppress(ImportError):
    from hypothesis import settings

    # No test asserts a time: on a machine that is busy any example may be slow.
    settings.register_profile("unhurried", deadline=None)
    settings.load_profile("unhurried")

simulation.offer()  # before test modules ask which devices there are

IN_CI = os.environ.get("CI") == "true"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine lacks; in CI nothing is lacking but CUDA.

    Tests that need an accelerator have the simulated one where there is none.

    What ends schedulers comes last: it leaves clients behind that have lost theirs, and
    the engine that the other tests share must not meet them.
    """
    from core.devices import other_than_cpu

    items.sort(key=lambda item: "jobs/test_cluster" in item.nodeid)
    has_accelerator = other_than_cpu() is not None
    for item in items:
        if item.get_closest_marker("gpu") and not has_accelerator:
            item.add_marker(pytest.mark.skip(reason="no accelerator here"))
        if item.get_closest_marker("sim") and not simulation.works():
            item.add_marker(pytest.mark.skip(reason="no simulated accelerator here"))
        if IN_CI:
            continue
        if item.get_closest_marker("browser") and CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))
        if item.get_closest_marker("real_data") and fashion_mnist.find() is None:
            item.add_marker(pytest.mark.skip(reason="no Fashion-MNIST here"))


def pytest_collection_finish() -> None:
    """Let no garbage collection look again at torch and at all tests, for 0.2 s."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # otherwise, a library would report leaks when Python ends


@pytest.fixture(autouse=True)
def main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a test the main module is the one that it was before.

    AppTest puts its script there, and children of multiprocessing would run that.
    """
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="session", autouse=True)
def database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What tests do is not kept where an app on this machine keeps its runs."""
    file = tmp_path_factory.mktemp("database") / "tests.sqlite"
    os.environ["DATABASE_URL"] = f"sqlite:///{file}"
    os.environ["MEASURE_WHEN_IDLE"] = "0"  # but for tests that are about it


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'data' / 'store.sqlite'}"


@pytest.fixture
def open_store() -> Iterator[Callable[[str], "Store"]]:
    """Opens the database at an address, until the test ends."""
    from core.store.store import Store

    with ExitStack() as opened:
        yield lambda url: opened.enter_context(closing(Store(url)))


@pytest.fixture(scope="session")
def engine() -> Iterator["Engine"]:
    """The engine that the pages use too, with its workers up."""
    from core.ui import server

    server.store()
    engine = server.engine()
    engine.ask("core.devices:describe", seconds=120)
    yield engine
    engine.close()
    server.store().close()


@pytest.fixture
def own_key(engine: "Engine", monkeypatch: pytest.MonkeyPatch) -> None:
    """Let other engines of this process join the cluster of `engine`."""
    from core.jobs import cluster

    own = engine._connection._cluster
    assert own is not None
    monkeypatch.setattr(cluster, "security", lambda *_: own.security)


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """One server for all tests; each finds its database empty."""
    from tests.app.store.postgres import running, tool

    if tool("initdb") is None and not IN_CI:
        pytest.skip("no Postgres on this machine")
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small tensors on a busy machine: threads would only wait for each other."""
    from core.devices import cpu_threads

    with cpu_threads(1):
        yield


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor's code has minutes: on a machine that is busy it may need them."""
    for module in ("core.jobs.code", "core.script.check"):
        monkeypatch.setattr(f"{module}.SECONDS", 120.0)


@pytest.fixture
def missing_device() -> str:
    """A kind of device that this machine has not."""
    from core.devices import accelerator

    here = accelerator()
    return "mps" if here is None or here.type != "mps" else "xpu"
