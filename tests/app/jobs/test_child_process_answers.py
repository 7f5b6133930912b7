"""What a child's answer can't do to its parent, whatever the answer is."""

import json
import os
import pickle
import signal
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from core.jobs import child_process
from core.lessons.checkpoints import upload
from core.lessons.checkpoints.checkpoints_result import Opened
from core.lessons.evaluate import picture
from core.script import check, syntax
from core.store import codec
from tests.app.jobs.landlock import landlock
from to_device.errors import ExplainedError

HERE = "tests.app.jobs.test_child_process_answers"
posix = pytest.mark.skipif(sys.platform == "win32", reason="the frame is POSIX's")


class Bomb:
    """An object whose pickle is the order: call open(path, "w")."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable, tuple[str, str]]:
        return open, (str(self.path), "w")


def framed(data: bytes) -> bytes:
    return child_process.LENGTH.pack(len(data)) + data


def finished(value: str) -> bytes:
    """A frame with JSON that json.dumps would not write."""
    return framed(b'{"status": "finished", "value": %s}' % value.encode())


ANSWERS: dict[str, Callable[[Path], bytes]] = {
    "a pickle": lambda path: framed(pickle.dumps(Bomb(path))),
    "a pickle as multiprocessing sends it": lambda path: (
        struct.pack("!i", len(pickle.dumps(Bomb(path)))) + pickle.dumps(Bomb(path))
    ),
    "two gigabytes": lambda _: child_process.LENGTH.pack(2 << 30) + b"[" * 1000,
    "the longest length": lambda _: b"\xff" * 8,
    "nested lists": lambda _: finished("[" * 100_000 + "]" * 100_000),
    "unclosed lists": lambda _: finished("[" * 1_000_000),
    "nested dicts": lambda _: finished('{"a":' * 100_000 + "1" + "}" * 100_000),
    "no number": lambda _: finished("[NaN]"),
    "no finite number": lambda _: finished("[1e999]"),
    "a text for numbers": lambda _: finished('["1"]'),
    "a number for numbers": lambda _: finished("1"),
    "a truth for a number": lambda _: finished("[true]"),
    "a class": lambda _: finished('{"class": "core.config:RunConfig", "value": {}}'),
    "bytes for numbers": lambda _: finished('{"base64": "AAAA"}'),
    "a number of many digits": lambda _: finished("[" + "9" * 100_000 + "]"),
    "no JSON": lambda _: framed(b"finished"),
    "no text": lambda _: framed(b"\xff\xfe\xfd"),
    "no bytes": lambda _: framed(b""),
    "a list": lambda _: framed(b"[]"),
    "no status": lambda _: framed(b'{"value": [1.0]}'),
    "another status": lambda _: framed(b'{"status": "interrupted", "value": [1.0]}'),
    "a cancel": lambda _: framed(b'{"status": "cancelled"}'),
    "no sentence": lambda _: framed(b'{"status": "failed"}'),
    "one field more": lambda _: framed(b'{"status": "finished", "value": [], "x": 1}'),
    "a report": lambda _: framed(b'{"status": "report", "value": [1.0]}'),
    "a message that is no text": lambda _: framed(b'{"status":"failed","message":[1]}'),
}


def answer(name: str, path: Path) -> list[float]:
    """Runs in a child, and answers in the place of its process."""
    write_and_end(ANSWERS[name](path))
    return []


def half(then: str) -> list[float]:
    """Runs in a child: sends half an answer, and ends, or doesn't."""
    os.write(pipe(), finished("[1.0]")[:-3])
    if then == "waits":
        signal.alarm(0)
        with suppress(PermissionError):  # where the kernel refuses it
            if os.fork() == 0:
                os.setsid()  # so that nobody finds it, and the pipe stays open
                time.sleep(20)
        time.sleep(20)
    os._exit(0)


def nothing() -> list[float]:
    os._exit(0)


def pipe() -> int:
    """The descriptor of the pipe to the parent, as a taken-over process finds it."""
    frame = sys._getframe()
    while frame.f_code.co_name != "_work":
        assert frame.f_back
        frame = frame.f_back
    return frame.f_locals["pipe"].fileno()


def write_and_end(data: bytes) -> None:
    where = pipe()
    while data:
        data = data[os.write(where, data) :]
    os._exit(0)


@posix
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_none_is_a_sentence_and_nothing_else_happens(name, tmp_path):
    marker = tmp_path / "marker"
    with pytest.raises(child_process.UnreadableAnswerError):
        child_process.call(f"{HERE}:answer", name, marker, hostile=True)
    assert not marker.exists()


def test_the_bomb_is_real(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "marker"))).close()
    assert (tmp_path / "marker").exists()


@posix
@pytest.mark.parametrize("address", [f"{HERE}:nothing", f"{HERE}:half"])
def test_an_answer_that_ends_early_is_a_death(address):
    arguments = ["ends"] * address.endswith("half")
    with pytest.raises(child_process.ChildDiedError, match="status 0"):
        child_process.call(address, *arguments, hostile=True)


@posix
def test_an_answer_that_never_ends_is_waited_for_until_the_time_limit():
    began = time.monotonic()
    with pytest.raises(child_process.ChildDiedError, match=r"\b3 s"):
        child_process.call(f"{HERE}:half", "waits", seconds=3, hostile=True)
    assert time.monotonic() < began + 18


def fail() -> None:
    raise ExplainedError("[Sign in](https://evil.example) ![](https://evil.example/a)")


def test_a_hostile_childs_sentence_has_no_links():
    with pytest.raises(ExplainedError) as caught:
        child_process.call(f"{HERE}:fail", hostile=True)
    assert str(caught.value).startswith("`[Sign in]")


def unsendable() -> Any:
    return {1, 2}


def test_a_result_that_is_no_plain_data_is_a_sentence():
    with pytest.raises(ExplainedError, match=r"\bset\b"):
        child_process.call(f"{HERE}:unsendable")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (syntax.Problem, syntax.Problem(3, "look", "This")),
        (check.Checked, check.Checked((syntax.Problem(3, "sure", "a", "b"),))),
        (tuple[int, bytes], (1, b"\x00\xff")),
        (dict[str, float | None], {"a": 0.1, "b": None, "c": 1e300}),
        (list[tuple[int, ...]], [(1, 2), ()]),
        (Any, {"a": [1, None, "é"]}),
    ],
)
def test_the_reader_names_the_type_and_gets_it(kind, value):
    assert codec.from_json(codec.to_json(value), kind) == value


OPENED = Opened("safetensors", (), (), "ann", (), (), (), (), None)
LINK = "[Sign in](https://evil.example)"


def forged(monkeypatch: pytest.MonkeyPatch, value: Any) -> None:
    monkeypatch.setattr(child_process, "call", lambda *_, **__: value)


@pytest.mark.parametrize(
    "field",
    [
        {"model": "resnet"},
        {"checkpoint": b"PK"},
        {"unexpected": ("a",) * 2000},
        {"missing": ("a" * 2000,)},
        {"checkpoint": b"\xff" * upload.numbers_size("ann")},
    ],
    ids=["model", "file", "many", "long", "NaN"],
)
def test_a_checkpoint_is_rebuilt_from_numbers_or_refused(field, monkeypatch):
    forged(monkeypatch, upload.replace(OPENED, **field))
    with pytest.raises(ExplainedError) as caught:
        upload.open_safely(b"", "a.pt")
    assert isinstance(caught.value.__context__, child_process.UnreadableAnswerError)


def test_an_opened_files_sentences_have_no_links(monkeypatch):
    forged(monkeypatch, upload.replace(OPENED, format=LINK, notes=(LINK,)))
    opened = upload.open_safely(b"", "a.pt")
    assert {opened.format, *opened.notes} == {f"`{LINK}`"}


@pytest.mark.parametrize(
    "images",
    [
        (),
        ((28, bytes(784)),) * 3,
        ((28, bytes(784)),) * 5,
        ((28, bytes(784)),) * 3 + ((27, bytes(27 * 27)),),
        ((0, b""), *((28, bytes(784)),) * 3),
        ((5, bytes(784)), *((28, bytes(784)),) * 3),
        ((1, bytes(10_000)), *((28, bytes(784)),) * 3),
        ((-1, bytes(784)), *((28, bytes(784)),) * 3),
    ],
)
def test_images_that_are_none_are_refused(images, monkeypatch):
    forged(monkeypatch, picture.Sent(images, False))
    with pytest.raises(ExplainedError) as caught:
        picture.prepare_apart(b"")
    assert isinstance(caught.value.__context__, child_process.UnreadableAnswerError)


@pytest.mark.parametrize("line", [0, 3, -1, 10**9])
def test_a_finding_is_at_a_line_of_the_script(line, monkeypatch):
    forged(monkeypatch, check.Checked((syntax.Problem(line, "sure", "a"),)))
    with pytest.raises(child_process.UnreadableAnswerError):
        check.check_in_child("x = 1\ny = 2")


@pytest.mark.slow
@posix
@pytest.mark.skipif(sys.platform != "linux", reason="the signal is POSIX's")
def test_a_killed_server_of_forks_is_replaced_at_once():
    server = child_process.call("os:getppid")
    os.kill(server, signal.SIGKILL)
    assert child_process.call("os:getppid") != server


def read(paths: list[str]) -> list[str]:
    """Runs in a child: which of the files and folders can be read."""
    could = []
    for path in paths:
        try:
            os.listdir(path) if os.path.isdir(path) else os.close(os.open(path, 0))
            could.append(path)
        except OSError:
            pass
    return could


@landlock
def test_a_hostile_child_reads_no_data_and_no_settings(tmp_path):
    secret = tmp_path / "cookie.key"
    secret.write_text("secret")
    root = child_process.ROOT
    settings = root / "data-of-this-test"
    paths = [secret, tmp_path, root / "README.md", root, "/etc/passwd", "/proc/1/maps"]
    settings.write_text("secret")
    try:
        names = list(map(str, [*paths, settings, f"/proc/{os.getpid()}/environ"]))
        assert set(child_process.call(f"{HERE}:read", names)) >= set(names[:5])
        assert child_process.call(f"{HERE}:read", names, hostile=True) == []
    finally:
        settings.unlink()
    code = [str(root / "core" / "config.py"), json.__file__]
    assert child_process.call(f"{HERE}:read", code, hostile=True) == code


@pytest.mark.parametrize(
    "private",
    [child_process.ROOT / "README.md", child_process.DATA / "cookie.key", Path.home()],
)
def test_no_folder_that_a_hostile_child_reads_holds_what_is_private(private):
    assert not [
        path for path in child_process.readable() if private.is_relative_to(path)
    ]
