import gzip
import itertools
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from core.data import fashion_mnist
from core.data.fashion_mnist import Download
from core.errors import CancelledError
from core.watch import Watch
from tests.app.data.mirror import (
    LABELS,
    NAMES,
    Answer,
    Files,
    Mirror,
    bodies,
    ok,
    serve,
)
from to_device.errors import ExplainedError

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mirrors of these tests are on this machine, whatever proxy is set."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def mirror(published: Files, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror of the small dataset, in place of the real one."""
    with serve(published) as server:
        monkeypatch.setattr(fashion_mnist, "MIRROR", server.url)
        yield server


def here() -> Files:
    """What lies in the data folder now, its lock aside."""
    paths = fashion_mnist.DATA_FOLDER.glob("*")
    return {path.name: path.read_bytes() for path in paths if path.name != ".lock"}


def test_fetched_files_are_whole(mirror: Mirror, published: Files) -> None:
    fashion_mnist.download()
    assert here() == published
    assert fashion_mnist.read() == (fashion_mnist.DATA_FOLDER, bodies(published))
    assert sorted(mirror.asked) == sorted(mirror.archives)


def test_progress_is_reported(mirror: Mirror) -> None:
    events: list[Download] = []
    fashion_mnist.download(Watch(events.append))
    done = [event.done_bytes for event in events]
    assert all(before <= after for before, after in pairwise(done))
    assert done[-1] == sum(map(len, mirror.archives.values()))


def test_nothing_is_fetched_twice(mirror: Mirror, published: Files) -> None:
    fashion_mnist.download()
    mirror.asked.clear()
    fashion_mnist.download()
    assert not mirror.asked
    (fashion_mnist.DATA_FOLDER / LABELS).write_bytes(b"damaged")
    fashion_mnist.download()
    assert mirror.asked == [f"{LABELS}.gz"]
    assert here() == published


FAILURES: dict[str, Answer] = {
    "404": lambda _: b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "hangs up": lambda _: b"",
    "closes mid-way": lambda archive: ok(archive)[: -len(archive) // 2],
    "chunk cut off": lambda _: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nabc"
    ),
    "not HTTP": lambda _: b"SSH-2.0-OpenSSH_9.2\r\n",
    "a web page": lambda _: ok(b"<html>Please log in to this network</html>"),
    "another file": lambda _: ok(gzip.compress(b"not what was asked for")),
    "bad deflate": lambda archive: ok(archive[:10] + b"\xff" * 9 + archive[19:]),
    "never answers": lambda _: b"",
    "never ends": lambda archive: ok(archive)[: -len(archive) // 2],
}


@pytest.mark.parametrize("failure", FAILURES)
def test_failing_mirrors_are_explained(
    mirror: Mirror, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.answer, mirror.hangs = FAILURES[failure], failure.startswith("never")
    if mirror.hangs:
        monkeypatch.setattr(fashion_mnist, "NETWORK_TIMEOUT_SECONDS", 0.5)
    with pytest.raises(ExplainedError, match=mirror.url) as caught:
        fashion_mnist.download()
    message = str(caught.value)
    assert NAMES[0] in message
    assert "FASHION_MNIST_DIR" in message
    assert ": . " not in message  # a reason is given
    assert not here()


def dripping(archive: bytes) -> Iterator[bytes]:
    """A whole answer, so slow that nobody can wait for it, but never silent."""
    head, _, body = ok(archive).partition(b"\r\n\r\n")
    yield head + b"\r\n\r\n"
    for byte in body:
        yield bytes([byte])
        time.sleep(0.02)


def endless(archive: bytes) -> Iterator[bytes]:
    """An answer that only ends when whoever asked hangs up."""
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    yield from itertools.repeat(archive)


def test_a_mirror_that_drips_is_left(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never silent for long, so that only the time in all can end it.

    Progress is told ten times a second, not byte by byte.
    """
    monkeypatch.setattr(fashion_mnist, "DOWNLOAD_SECONDS", 1.0)
    mirror.answer = dripping
    events: list[Download] = []
    with pytest.raises(ExplainedError, match=r"\b1 s\b"):
        fashion_mnist.download(Watch(events.append))
    assert len(events) <= 11
    assert not here()


def test_a_mirror_that_never_ends_is_left(mirror: Mirror) -> None:
    events: list[Download] = []
    mirror.answer = endless
    with pytest.raises(ExplainedError, match=mirror.url):
        fashion_mnist.download(Watch(events.append))
    assert all(event.done_bytes < 26_000 for event in events)
    assert not here()


def test_a_small_archive_of_much_is_not_unpacked(mirror: Mirror) -> None:
    bomb = gzip.compress(bytes(20_000_000))
    mirror.answer = lambda _: ok(bomb)
    tracemalloc.start()
    with pytest.raises(ExplainedError, match=r"\d bytes"):
        fashion_mnist.download()
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert not here()


def test_a_download_is_cancelled_in_the_middle(
    mirror: Mirror, published: Files
) -> None:
    mirror.answer = lambda archive: (
        dripping(archive) if len(mirror.asked) > 2 else ok(archive)
    )
    events: list[Download] = []
    with pytest.raises(CancelledError):
        fashion_mnist.download(Watch(events.append, cancelled=lambda: len(events) > 5))
    assert here() == {name: published[name] for name in NAMES[:2]}


def test_unwritable_folder_is_explained(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(fashion_mnist, "DATA_FOLDER", tmp_path / "file" / "data")
    with pytest.raises(ExplainedError, match=str(tmp_path / "file" / "data")):
        fashion_mnist.download()
    assert not mirror.asked


def test_two_processes_fetch_once(mirror: Mirror, published: Files) -> None:
    script = f"""
from pathlib import Path
from core.data import fashion_mnist as f
f.SHAPES, f.SHA256 = {fashion_mnist.SHAPES!r}, {fashion_mnist.SHA256!r}
f.MIRROR, f.DATA_FOLDER = {mirror.url!r}, Path({str(fashion_mnist.DATA_FOLDER)!r})
f.download()
"""
    command = [sys.executable, "-c", script]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    assert [process.wait(180) for process in processes] == [0, 0]
    assert here() == published
    assert len(mirror.asked) == 4
