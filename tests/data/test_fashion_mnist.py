"""The files of Fashion-MNIST: whole or an error, fetched whole or not at all.

Most tests publish a small dataset of their own in place of the real one.
"""

import gzip
import hashlib
import socketserver
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from core.data import fashion_mnist
from core.data.results import Download
from core.errors import CancelledError, ExplainedError

ROOT = Path(__file__).parents[2]
IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", IMAGES, LABELS)

Files = dict[str, bytes]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Files:
    """A small dataset in the place of the real one, and no file of it here yet."""
    files, shapes = {}, {}
    for name in NAMES:
        count = 30 if name.startswith("train") else 20
        shape = (count, 28, 28) if "images" in name else (count,)
        header = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
        body = hashlib.shake_256(name.encode()).digest(count * 28 * 28)
        files[name] = header + body[: count * (784 if "images" in name else 1)]
        shapes[name] = shape
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    monkeypatch.setattr(fashion_mnist, "SHAPES", shapes)
    monkeypatch.setattr(fashion_mnist, "SHA256", sums)
    monkeypatch.setattr(fashion_mnist, "DATA_FOLDER", tmp_path / "data")
    monkeypatch.setattr(fashion_mnist, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.delenv("FASHION_MNIST_DIR", raising=False)
    return files


@pytest.fixture
def folder(published: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A whole copy, unpacked, in the folder that FASHION_MNIST_DIR names."""
    folder = tmp_path / "mine"
    put(folder, published)
    monkeypatch.setenv("FASHION_MNIST_DIR", str(folder))
    return folder


def put(folder: Path, files: Files, packed: bool = False) -> None:
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)


def bodies(files: Files) -> Files:
    """What is left of each file without its header."""
    return {n: data[16 if "images" in n else 8 :] for n, data in files.items()}


# Reading


@pytest.mark.parametrize("packed", [False, True])
def test_whole_files_are_read(folder: Path, published: Files, packed: bool) -> None:
    """Packed or not, each file's bytes after its header come back."""
    for name in NAMES:
        (folder / name).unlink()
    put(folder, published, packed)
    assert fashion_mnist.read() == (folder, bodies(published))


DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (lambda data: data[:-1], "truncated"),
    "empty": (lambda _: b"", "truncated"),
    "too long": (lambda data: data + b"x", "1 too many"),
    "altered byte": (lambda data: data[:-9] + b"?" + data[-8:], "altered"),
    "wrong header": (lambda data: b"\0\0\x0d" + data[3:], "header"),
    "other shape": (lambda data: data[:4] + b"\1" + data[5:], "header"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", [IMAGES, LABELS])
def test_damaged_files_are_refused(
    folder: Path, name: str, damage: str, packed: bool
) -> None:
    """One damaged file of four: the error names it, what is wrong, and what to do."""
    spoil, problem = DAMAGE[damage]
    data = spoil((folder / name).read_bytes())
    (folder / name).unlink()
    put(folder, {name: data}, packed)
    with pytest.raises(ExplainedError, match=problem) as caught:
        fashion_mnist.read()
    assert str(folder / name) in str(caught.value)
    assert "FASHION_MNIST_DIR" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_named(folder: Path, name: str) -> None:
    """One missing file of four: the error names it and what to do."""
    (folder / name).unlink()
    with pytest.raises(ExplainedError, match=f"{name} is missing") as caught:
        fashion_mnist.read()
    assert "FASHION_MNIST_DIR" in str(caught.value)


BROKEN_ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "cut off": lambda data: data[: len(data) // 2],
    "no gzip": lambda data: b"<html>" + data,
    "empty": lambda _: b"",
    "wrong checksum": lambda data: data[:-8] + b"\0\0\0\0" + data[-4:],
    "bad deflate": lambda data: data[:10] + b"\xff\xff\xff" + data[13:],
}


@pytest.mark.parametrize("broken", BROKEN_ARCHIVES)
def test_broken_archives_are_refused(
    folder: Path, published: Files, broken: str
) -> None:
    """An archive that can't be unpacked is named, with what to do."""
    (folder / IMAGES).unlink()
    archive = folder / f"{IMAGES}.gz"
    archive.write_bytes(BROKEN_ARCHIVES[broken](gzip.compress(published[IMAGES])))
    with pytest.raises(ExplainedError, match=IMAGES) as caught:
        fashion_mnist.read()
    assert str(archive) in str(caught.value)
    assert "FASHION_MNIST_DIR" in str(caught.value)


def test_damage_in_the_data_folder_is_mended_by_fetching(published: Files) -> None:
    """For files that the app has fetched itself, the way out is to fetch them again."""
    put(fashion_mnist.DATA_FOLDER, {**published, IMAGES: b"half"})
    with pytest.raises(ExplainedError, match=r"fetch .* again from the Train page"):
        fashion_mnist.read()


@pytest.mark.parametrize("wrong", ["nowhere", "file", "empty"])
def test_wrong_folder_is_an_error(
    published: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: str
) -> None:
    """A FASHION_MNIST_DIR that is wrong is told, though whole files lie elsewhere."""
    put(fashion_mnist.DATA_FOLDER, published)
    (tmp_path / "file").write_text("a file, not a folder")
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("FASHION_MNIST_DIR", str(tmp_path / wrong))
    assert fashion_mnist.find() == tmp_path / wrong
    with pytest.raises(ExplainedError, match=str(tmp_path / wrong)):
        fashion_mnist.read()


def test_nothing_here_is_an_error_with_ways_out(published: Files) -> None:
    """Without any file, the error says where to get them and what else to train on."""
    assert published
    assert fashion_mnist.find() is None
    with pytest.raises(ExplainedError, match=r"Train page.+sprites.+Debian"):
        fashion_mnist.read()


def test_debians_archives_are_unpacked(published: Files) -> None:
    """Debian's archives are read, and lie unpacked in the data folder afterwards."""
    debian, unpacked = fashion_mnist.DEBIAN_FOLDER, fashion_mnist.DATA_FOLDER
    put(debian, published, packed=True)
    assert fashion_mnist.read() == (debian, bodies(published))
    assert {name: (unpacked / name).read_bytes() for name in NAMES} == published
    assert fashion_mnist.read() == (unpacked, bodies(published))


def test_half_a_copy_does_not_hide_debians(published: Files) -> None:
    """While one worker unpacks Debian's archives, another still reads all of them."""
    put(fashion_mnist.DEBIAN_FOLDER, published, packed=True)
    put(fashion_mnist.DATA_FOLDER, {NAMES[0]: published[NAMES[0]]})
    assert fashion_mnist.read()[1] == bodies(published)


@pytest.mark.real_data
def test_the_real_files_are_those_that_zalando_published() -> None:
    """The real files pass the check and have the bodies of 70,000 images."""
    _, files = fashion_mnist.read()
    assert {name: len(data) for name, data in files.items()} == {
        "train-images-idx3-ubyte": 60_000 * 784,
        "train-labels-idx1-ubyte": 60_000,
        "t10k-images-idx3-ubyte": 10_000 * 784,
        "t10k-labels-idx1-ubyte": 10_000,
    }


@pytest.mark.real_data
def test_one_altered_pixel_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One pixel of the real test images that is one shade brighter is an error."""
    _, files = fashion_mnist.read()
    labels = bytes.fromhex("0000080100002710") + files[LABELS]
    images = bytearray.fromhex("00000803000027100000001c0000001c") + files[IMAGES]
    images[4_000_000] ^= 1
    put(tmp_path, {IMAGES: bytes(images), LABELS: labels})
    monkeypatch.setattr(fashion_mnist, "SHA256", _only(IMAGES, LABELS))
    monkeypatch.setenv("FASHION_MNIST_DIR", str(tmp_path))
    with pytest.raises(ExplainedError, match=f"{IMAGES} .+ altered"):
        fashion_mnist.read()
    images[4_000_000] ^= 1
    put(tmp_path, {IMAGES: bytes(images)})
    assert fashion_mnist.read()[1][IMAGES] == files[IMAGES]


def _only(*names: str) -> dict[str, str]:
    return {name: fashion_mnist.SHA256[name] for name in names}


# Fetching


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mirrors of these tests are on this machine, whatever proxy is set."""
    monkeypatch.setenv("no_proxy", "*")


# What the mirror answers to a request for an archive.
Answer = Callable[[bytes], bytes]


def ok(archive: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(archive) + archive


class Mirror(socketserver.ThreadingTCPServer):
    """A server of archives that can be made to fail."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, files: Files) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.archives = {f"{n}.gz": gzip.compress(data, 1) for n, data in files.items()}
        self.answer: Answer = ok
        self.hangs = False  # after the answer, instead of hanging up
        self.asked: list[str] = []
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"


class Request(socketserver.StreamRequestHandler):
    """One request, answered as the mirror is told to."""

    server: Mirror

    def handle(self) -> None:
        name = self.rfile.readline().split()[1].decode().lstrip("/")
        while self.rfile.readline().strip():
            pass
        self.server.asked.append(name)
        self.wfile.write(self.server.answer(self.server.archives[name]))
        if self.server.hangs:
            self.server.closing.wait(20)


@pytest.fixture
def mirror(published: Files, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    """A mirror of the small dataset, in place of the real one."""
    with serve(published) as server:
        monkeypatch.setattr(fashion_mnist, "MIRROR", server.url)
        monkeypatch.setattr(fashion_mnist, "NETWORK_TIMEOUT_SECONDS", 0.5)
        yield server


@contextmanager
def serve(files: Files) -> Iterator[Mirror]:
    """A mirror of these files, as long as the context lasts."""
    with Mirror(files) as mirror:
        threading.Thread(target=mirror.serve_forever, args=(0.02,)).start()
        yield mirror
        mirror.closing.set()
        mirror.shutdown()


def here() -> Files:
    """What lies in the data folder now, its lock aside."""
    found = fashion_mnist.DATA_FOLDER.glob("*")
    return {path.name: path.read_bytes() for path in found if path.name != ".lock"}


def test_fetched_files_are_whole(mirror: Mirror, published: Files) -> None:
    """After fetching, the four files lie unpacked in the data folder, and are read."""
    fashion_mnist.download()
    assert here() == published
    assert fashion_mnist.read() == (fashion_mnist.DATA_FOLDER, bodies(published))
    assert sorted(mirror.asked) == sorted(mirror.archives)


def test_progress_is_told(mirror: Mirror) -> None:
    """The bytes that are done only grow, up to the size of the archives."""
    events: list[Download] = []
    fashion_mnist.download(events.append)
    done = [event.done_bytes for event in events]
    assert all(before < after for before, after in pairwise(done))
    assert done[-1] == sum(map(len, mirror.archives.values()))


def test_nothing_is_fetched_twice(mirror: Mirror, published: Files) -> None:
    """A second download asks for nothing, or for the one file that was damaged."""
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
def test_failing_mirrors_are_explained(mirror: Mirror, failure: str) -> None:
    """Whatever the mirror does: a sentence with its address, and no file is left."""
    mirror.answer, mirror.hangs = FAILURES[failure], failure.startswith("never")
    with pytest.raises(ExplainedError, match=mirror.url) as caught:
        fashion_mnist.download()
    message = str(caught.value)
    assert NAMES[0] in message
    assert "FASHION_MNIST_DIR" in message
    assert ": . " not in message  # a reason is given
    assert not here()


def test_closed_port_is_explained(
    published: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing listens, the error names the address that was tried."""
    with Mirror(published) as closed:
        url = closed.url
    monkeypatch.setattr(fashion_mnist, "MIRROR", url)
    with pytest.raises(ExplainedError, match=url):
        fashion_mnist.download()


def test_what_was_whole_stays(mirror: Mirror, published: Files) -> None:
    """A mirror that fails at the third file leaves two whole ones, and no third."""

    def answer(archive: bytes) -> bytes:
        return ok(archive) if len(mirror.asked) < 3 else b""

    mirror.answer = answer
    with pytest.raises(ExplainedError):
        fashion_mnist.download()
    assert here() == {name: published[name] for name in NAMES[:2]}


def test_download_is_cancelled(mirror: Mirror) -> None:
    """Cancelled in the first file: it ends there, and leaves no file."""
    with pytest.raises(CancelledError):
        fashion_mnist.download(cancelled=lambda: True)
    assert len(mirror.asked) == 1
    assert not here()


def test_unwritable_folder_is_explained(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A data folder that can't be made is named, before anything is fetched."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(fashion_mnist, "DATA_FOLDER", tmp_path / "file" / "data")
    with pytest.raises(ExplainedError, match=str(tmp_path / "file" / "data")):
        fashion_mnist.download()
    assert not mirror.asked


def test_two_threads_fetch_once(mirror: Mirror, published: Files) -> None:
    """Two downloads in one process end with whole files, fetched once."""
    threads = [threading.Thread(target=fashion_mnist.download) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert here() == published
    assert len(mirror.asked) == 4


def test_two_processes_fetch_once(mirror: Mirror, published: Files) -> None:
    """Two downloads in two processes end with whole files, fetched once."""
    script = f"""
from pathlib import Path
from core.data import fashion_mnist as f
f.SHAPES, f.SHA256 = {fashion_mnist.SHAPES!r}, {fashion_mnist.SHA256!r}
f.MIRROR, f.DATA_FOLDER = {mirror.url!r}, Path({str(fashion_mnist.DATA_FOLDER)!r})
f.download()
"""
    command = [sys.executable, "-c", script]
    processes = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert here() == published
    assert len(mirror.asked) == 4


@pytest.mark.real_data
def test_real_archives_are_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The real archives pass through a mirror, and are the published files again."""
    _, files = fashion_mnist.read()
    headers = {
        name: bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)
        for name, shape in fashion_mnist.SHAPES.items()
    }
    monkeypatch.setattr(fashion_mnist, "DATA_FOLDER", tmp_path)
    with serve({name: headers[name] + files[name] for name in NAMES}) as server:
        monkeypatch.setattr(fashion_mnist, "MIRROR", server.url)
        fashion_mnist.download()
    assert bodies(here()) == files
