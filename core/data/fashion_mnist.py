"""The files of Fashion-MNIST: find, check and fetch them, without torch.

Zalando's dataset has 60,000 training images and 10,000 test images, of 28×28 pixels, in
ten classes. It is described at https://github.com/zalandoresearch/fashion-mnist.
"""

import gzip
import hashlib
import io
import os
import time
import urllib.request
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from math import prod
from pathlib import Path

from filelock import FileLock

from core.folders import DATA
from core.registry import stored
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError, quoted

# SHA-256 of the unpacked files: archives differ from one packer to the next.
SHA256 = {
    "train-images-idx3-ubyte": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"
    ),
    "train-labels-idx1-ubyte": (
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"
    ),
    "t10k-images-idx3-ubyte": (
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"
    ),
    "t10k-labels-idx1-ubyte": (
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"
    ),
}
SHAPES = {
    "train-images-idx3-ubyte": (60_000, 28, 28),
    "train-labels-idx1-ubyte": (60_000,),
    "t10k-images-idx3-ubyte": (10_000, 28, 28),
    "t10k-labels-idx1-ubyte": (10_000,),
}
CLASSES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)

# The layout that torchvision.datasets.FashionMNIST(root="data") reads.
DATA_FOLDER = DATA / "FashionMNIST" / "raw"
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
MIRROR = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
DOWNLOAD_BYTES = 30_878_645  # all four archives at the mirror
NETWORK_TIMEOUT_SECONDS = 8.0  # the longest time without data from the mirror
DOWNLOAD_SECONDS = 900.0  # how long a download may take in all: enough at 35 kB/s
PIECE_SECONDS = 0.1  # between two reports of a download's progress
OTHER_WAYS = (
    "You can also install the Debian package dataset-fashion-mnist, or put the four "
    "files in a folder and set FASHION_MNIST_DIR to that folder."
)


@stored("download")
@dataclass(frozen=True)
class Download:
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class DatasetStatus:
    """Where a machine has Fashion-MNIST, and whether the files are complete."""

    source: str | None = None  # the folder, or None without files
    problem: str | None = None  # a sentence, if files are missing or damaged
    named: bool = False  # FASHION_MNIST_DIR names the folder

    @property
    def usable(self) -> bool:
        return self.source is not None and self.problem is None


def find() -> Path | None:
    """The folder with the files, packed or unpacked; None if there is none."""
    if named := os.environ.get("FASHION_MNIST_DIR"):
        return Path(named)  # even if the files aren't there
    # Prefer a folder with all files. If some are missing, a download may have stopped.
    for enough in (all, any):
        for folder in (DATA_FOLDER, DEBIAN_FOLDER):
            if enough(os.path.exists(_file(folder, name)) for name in SHA256):
                return folder
    return None


def read() -> tuple[Path, dict[str, bytes]]:
    """The folder, and the bytes of each file after its header.

    Raises ExplainedError, as `files` does.
    """
    folder, whole = files()
    return folder, {name: data[_header_bytes(name) :] for name, data in whole.items()}


def files() -> tuple[Path, dict[str, bytes]]:
    """The folder, and the content of each file by name, unpacked and with its header.

    Raises ExplainedError if files are missing, truncated or altered.
    """
    folder = find()
    if folder is None:
        raise ExplainedError(
            "Fashion-MNIST is not on this machine. Fetch it from the Train page, or "
            f"train on the sprites. {OTHER_WAYS}"
        )
    return folder, {name: _read(_file(folder, name)) for name in SHA256}


def download(watch: Watch = UNWATCHED) -> None:
    """Fetch the archives from Zalando's mirror into DATA_FOLDER.

    Raises ExplainedError if the mirror doesn't answer within seconds, takes too long
    in all, or sends files that differ from the published ones.
    """
    done, deadline = 0, time.monotonic() + DOWNLOAD_SECONDS
    try:
        DATA_FOLDER.mkdir(parents=True, exist_ok=True)
        with FileLock(DATA_FOLDER / ".lock", timeout=60, mode=0o600):
            for name in SHA256:
                with suppress(ExplainedError):
                    _read(DATA_FOLDER / name)
                    continue  # fetched earlier, or by the process that had the lock
                url = f"{MIRROR}{name}.gz"
                packed = bytearray()
                most = _bytes(name) * 101 // 100 + 1000  # room for what packing adds
                for piece in watch.until_cancelled(_pieces(url, most, deadline)):
                    packed += piece
                    done += len(piece)
                    watch.report(Download(done, DOWNLOAD_BYTES))
                data = _verify(_unpack(packed, _bytes(name), url), name, url)
                _write(DATA_FOLDER / name, data)
    except OSError as error:
        raise ExplainedError(
            f"{DATA_FOLDER} can't be written: {error}. {OTHER_WAYS}"
        ) from None


def _pieces(url: str, most: int, deadline: float) -> Iterator[bytes]:
    """The body of `url`, in at most ten pieces a second.

    Raises ExplainedError if the network is silent, if the body has more than `most`
    bytes, or at the deadline, a time of time.monotonic().
    """
    try:
        # In a thread, since looking up the mirror's address has no timeout of its own.
        pool = ThreadPoolExecutor(1)
        timeout = NETWORK_TIMEOUT_SECONDS
        opening = pool.submit(urllib.request.urlopen, url, timeout=timeout)
        pool.shutdown(wait=False)
        with opening.result(timeout) as response:
            if response.chunked:  # reading the size of a chunk has no timeout
                raise OSError("the server did not report the file's size")
            piece, due = b"", 0.0
            while chunk := response.read1(1 << 18):  # doesn't wait for a full chunk
                piece += chunk
                if (most := most - len(chunk)) < 0:
                    raise OSError("the server sent more bytes than expected")
                if (now := time.monotonic()) > deadline:
                    limit = f"{DOWNLOAD_SECONDS:.0f} s"
                    raise TimeoutError(f"the download took more than {limit}")
                if now > due:
                    yield piece
                    piece, due = b"", now + PIECE_SECONDS
            yield piece
    except (OSError, HTTPException) as error:  # URLError and timeouts are OSErrors
        reason = str(getattr(error, "reason", "") or error)
        reason = quoted(reason or "the server didn't respond in time", 120)
        raise ExplainedError(
            f"The app could not fetch Fashion-MNIST from {url}: {reason}. {OTHER_WAYS}"
        ) from None


def _file(folder: Path, name: str) -> Path:
    """The unpacked file if it exists, otherwise its archive."""
    plain = folder / name
    return plain if os.path.exists(plain) else folder / f"{name}.gz"


def _read(path: Path) -> bytes:
    """Read and unpack a file, and compare it with the published one."""
    name = path.stem
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        missing = path.with_suffix("")
        raise ExplainedError(f"{missing} is missing. {_mend(path, 'Fetch')}") from None
    except OSError as error:
        raise ExplainedError(f"{path} can't be read: {error}. {_mend(path)}") from None
    if path.suffix == ".gz":
        data = _unpack(data, _bytes(name), path)
    return _verify(data, name, path)


def _unpack(packed: bytes | bytearray, most: int, origin: object) -> bytes:
    """The archive's content, but at most `most` + 1 bytes.

    The extra byte tells the caller that the archive holds too much. Without the limit,
    a forged archive could fill the memory.
    """
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            return file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ExplainedError(
            f"{origin} is not a complete archive: {error}. {_mend(origin)}"
        ) from None


def _verify(data: bytes, name: str, origin: object) -> bytes:
    expected = _bytes(name)
    if len(data) < expected:
        problem = f"is truncated: it has only {len(data):,} of {expected:,} bytes"
    elif len(data) > expected:
        problem = f"is too long: it has more than {expected:,} bytes"
    elif hashlib.sha256(data).hexdigest() != SHA256[name]:
        problem = "was altered: its SHA-256 differs from the published file's"
    else:
        return data
    raise ExplainedError(f"{name} (from {origin}) {problem}. {_mend(origin)}")


def _mend(origin: object, advice: str = "Delete the file and fetch") -> str:
    if isinstance(origin, Path) and DATA_FOLDER in origin.parents:
        return f"{advice} Fashion-MNIST again from the Train page."
    return f"Replace the files. {OTHER_WAYS}"


def _header_bytes(name: str) -> int:
    return 4 + 4 * len(SHAPES[name])  # the IDX format's magic number, then the shape


def _bytes(name: str) -> int:
    return _header_bytes(name) + prod(SHAPES[name])


def _write(path: Path, data: bytes) -> None:
    """Write another file and rename it to `path`, so that nobody reads half a file."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
