"""Who may speak with the app's own scheduler, nannies, and workers."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from distributed import Security
from distributed.core import connect

from core.jobs import cluster
from core.jobs.engine import Engine
from tests.app.jobs.follow import wait

SECONDS = 5.0


def knock(address: str, tls: Security | None = None) -> None:
    """Connect as Dask does before it runs code. Raises an error if refused."""

    async def connect_and_leave() -> None:
        keys = tls.get_connection_args("client") if tls else {}
        # Dask waits for an answer without end, and its web server gives none.
        comm = await asyncio.wait_for(connect(address, **keys), SECONDS)
        await comm.close()

    # The main thread has Playwright's event loop if browsers were tested before.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, connect_and_leave()).result()


def family(engine: Engine) -> Iterator[psutil.Process]:
    own = engine._connection._cluster
    assert own is not None
    root = psutil.Process(own._process.pid)
    yield from (root, *root.children(recursive=True))


@pytest.fixture(scope="module")
def ports(engine: Engine) -> set[int]:
    """The ports of all listening sockets, which are on the loopback interface."""
    sockets = [
        socket
        for process in family(engine)
        for socket in process.net_connections()
        if socket.status == psutil.CONN_LISTEN
    ]
    assert {socket.laddr.ip for socket in sockets} == {"127.0.0.1"}
    return {socket.laddr.port for socket in sockets}


def test_the_own_key_opens_the_scheduler_and_the_workers(
    engine: Engine, ports: set[int]
) -> None:
    own = engine._connection._cluster
    assert own is not None
    workers = engine._connection._client.scheduler_info(n_workers=-1)["workers"]
    for address in (own.address, *workers):
        assert address.startswith("tls://127.0.0.1:")
        assert int(address.rpartition(":")[2]) in ports
        knock(address, own.security)


@pytest.mark.slow
def test_no_port_lets_in_who_has_no_key_or_another_one(ports: set[int]) -> None:
    stranger = cluster.temporary()
    assert len(ports) >= 5  # the scheduler, two nannies, and two workers
    for port in ports:
        for address, tls in (
            (f"tcp://127.0.0.1:{port}", None),
            (f"tls://127.0.0.1:{port}", stranger),
        ):
            with pytest.raises(OSError):  # noqa: PT011 - or a subclass of it
                knock(address, tls)


def test_no_process_has_the_hosts_secrets(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in its environment, nor in its command line."""
    for process in family(engine):
        environment, command = process.environ(), " ".join(process.cmdline())
        assert "DATABASE_URL" not in environment
        assert "PRIVATE KEY" not in command + " ".join(environment.values())
    # The engine's cluster began without these secrets, so another one is started.
    value = "unheard-of-secret"
    secrets = ("TEACHER_PASSWORD", "COOKIE_SECRET", "DATABASE_URL", "PGPASSWORD")
    for name in secrets:
        monkeypatch.setenv(name, value)
    other = cluster.Process()
    try:
        root = psutil.Process(other._process.pid)
        wait(lambda: len(root.children(recursive=True)) >= 2)
        for process in (root, *root.children(recursive=True)):
            text = " ".join((*process.cmdline(), *process.environ().values()))
            assert value not in text
    finally:
        other.kill()
