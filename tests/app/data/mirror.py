"""Files as Fashion-MNIST has them, and a mirror of them that can fail."""

import gzip
import socketserver
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", IMAGES, LABELS)

Files = dict[str, bytes]


def header(shape: tuple[int, ...]) -> bytes:
    """What stands before bytes of that shape."""
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape)


def put(folder: Path, files: Files, packed: bool = False) -> None:
    """Write the files, or an archive of each."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data))
        else:
            (folder / name).write_bytes(data)


def bodies(files: Files) -> Files:
    """What is left of each file without its header."""
    return {n: data[16 if "images" in n else 8 :] for n, data in files.items()}


# What the mirror answers to a request for an archive: at once, or piece by piece.
Answer = Callable[[bytes], bytes | Iterable[bytes]]


def ok(archive: bytes) -> bytes:
    """The archive, as a server sends it."""
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
        answer = self.server.answer(self.server.archives[name])
        with suppress(OSError):  # whoever asked has hung up
            for piece in [answer] if isinstance(answer, bytes) else answer:
                self.wfile.write(piece)
        if self.server.hangs:
            self.server.closing.wait(60)


@contextmanager
def serve(files: Files) -> Iterator[Mirror]:
    """A mirror of these files, as long as the context lasts."""
    with Mirror(files) as mirror:
        threading.Thread(target=mirror.serve_forever, args=(0.02,)).start()
        yield mirror
        mirror.closing.set()
        mirror.shutdown()
