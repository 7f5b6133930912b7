"""Checkpoints from strangers: all that is none of ours is refused in a sentence."""

import io
import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors.torch
import torch

from core import models
from core.jobs import child_process
from core.lessons.checkpoints import upload
from tests.app.lessons.checkpoints.files import (
    GOOD,
    TENSORS,
    Payload,
    archive,
    endless_global,
    header,
    legacy_that_is_all_index,
    legacy_with_huge_storage,
    lying_about_its_size,
    made_on_a_device,
    many_dimensions,
    nested,
    quantized,
    said_to_be_from,
    saved,
    sparse,
    weights,
    with_first,
    zip64,
)
from tests.process import HOUR
from to_device.errors import ExplainedError

GIGABYTE = 2**30
WRITES = ("os.mkdir", "os.rename", "os.system", "subprocess.Popen", "socket.connect")
ONE = torch.zeros(1)
MANY = range(5000)

INDEX_TOO_LARGE = f"{upload.MAX_INDEX_BYTES / 1e6:.1f} MB"
# Each with a name or a figure from its refusal.
HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "empty"),
    "image": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(100), "a PNG image"),
    "text": (lambda: b"hello, world\n" * 9, "unknown kind of file"),
    "plain pickle": (lambda: pickle.dumps(Payload(Path("x"))), "plain pickle"),
    "two bytes of a zip": (lambda: b"PK", "truncated"),
    "half of a zip": (lambda: GOOD[: len(GOOD) // 2], "truncated"),
    "a zip but for its end": (lambda: GOOD[:-30], "truncated"),
    "a zip with a hole": (lambda: GOOD[:900] + GOOD[5000:], "truncated"),
    "half of the old format": (
        lambda: saved(weights(), _use_new_zipfile_serialization=False)[:100_000],
        "truncated",
    ),
    "half of safetensors": (lambda: TENSORS[: len(TENSORS) // 2], "truncated"),
    "zip bomb": (
        lambda: archive(
            {"a/data.pkl": b"", "bomb": bytes(50_000_000)}, zipfile.ZIP_DEFLATED
        ),
        "compressed",
    ),
    "other zip": (lambda: archive({"word/document": b"text"}), "no data.pkl"),
    "path in a zip": (
        lambda: archive({"../evil/data.pkl": b"x"}),
        "points outside the archive",
    ),
    "absolute path in a zip": (
        lambda: archive({"/etc/passwd": b"x"}),
        "points outside the archive",
    ),
    "script": (
        lambda: archive({"m/data.pkl": b"x", "m/code/m.py": b"x"}),
        "TorchScript",
    ),
    "an index hidden by the case of its name": (
        lambda: archive({"m/DATA.PKL": b"]" * 3_000_000, "m/data.pkl": b"}."}),
        "two entries have the same name",
    ),
    "huge index": (
        lambda: archive({"m/data.pkl": b"]" * 3_000_000}),
        INDEX_TOO_LARGE,
    ),
    "old format, huge index": (legacy_that_is_all_index, INDEX_TOO_LARGE),
    "safetensors, huge index": (lambda: header("{" * 600_000), INDEX_TOO_LARGE),
    "many dimensions": (many_dimensions, "100,000 dimensions"),
    "many dimensions in a zip": (
        lambda: saved({"a": torch.zeros((1,) * 50_000)}),
        "50,000 dimensions",
    ),
    "made on a device": (made_on_a_device, "`torch.cuda.FloatTensor`"),
    "an endless global": (endless_global, "bbb…`"),
    "two archives": (lambda: zip64(saved([ONE]), GOOD), "type list"),
    "thousands of tensors": (
        lambda: saved({f"layer{i}": torch.zeros(1) for i in MANY}),
        "entries",
    ),
    "thousands of names": (
        lambda: saved({f"k{i}": ONE for i in MANY}),
        "5,000 entries",
    ),
    "thousands in safetensors": (
        lambda: safetensors.torch.save({f"k{i}": torch.zeros(1) for i in MANY}),
        "5,000 entries",
    ),
    "NaN": (lambda: with_first(lambda t: t / 0 * 0), "100,352"),
    "infinity": (lambda: with_first(lambda t: t.abs() / 0), "NaN, infinite"),
    "too large for float32": (
        lambda: with_first(lambda t: t.double() + 1e300),
        "100,352",
    ),
    "answers that overflow": (
        lambda: saved({name: t + 1e30 for name, t in weights().items()}),
        "20 of 20",
    ),
    "a negative variance": (
        lambda: saved({name: t - 2 for name, t in weights("cnn").items()}),
        "20 of 20",
    ),
    "a name that is not to be seen": (
        lambda: saved({"a\u202eb": ONE}),
        "`a\\u202eb`, which no",
    ),
    "tiny file, huge tensor": (
        lambda: saved({"layers.1.weight": ONE.expand(100_000, 100_000)}),
        "need 4e+04 MB",
    ),
    "many views of one tensor": (
        lambda: saved({f"k{i}": torch.zeros(1).expand(40) for i in range(9)}),
        "when copied",
    ),
    "old format, huge storage": (legacy_with_huge_storage, "more memory|truncated"),
    "a lie about sizes": (lying_about_its_size, "truncated|claim"),
    "payload": (lambda: saved({"layers.1.weight": Payload(Path("x"))}), "`io.open`"),
    "whole model": (lambda: saved(models.build("ann")), "`core.models.ANN`"),
    "header too long": (lambda: header("{}", 2**62), INDEX_TOO_LARGE),
    "header of brackets": (lambda: header('{"a":' + "[" * 100_000), "truncated"),
    "header without tensors": (lambda: header("{}"), "no tensor"),
    "header of nonsense": (lambda: header('{"a": {"dtype": "X"}}'), "truncated"),
    "header of huge shapes": (
        lambda: header(
            json.dumps(
                {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
            )
        ),
        "truncated",
    ),
    "complex": (lambda: with_first(lambda t: t + 0j), "complex"),
    "sparse": (lambda: with_first(lambda _: sparse()), "sparse"),
    "quantized": (lambda: with_first(lambda _: quantized()), "quantized"),
    "meta": (lambda: with_first(lambda t: t.to("meta")), "meta"),
    "a tensor": (lambda: saved(ONE), "type Tensor"),
    "a list": (lambda: saved([ONE]), "type list"),
    "no tensors": (lambda: saved({"epoch": 3}), "no tensor"),
    "empty wrappers": (
        lambda: saved({"state_dict": {"model": {"net": {"module": {}}}}}),
        "no tensor",
    ),
    "names that are numbers": (lambda: saved({1: ONE}), "`1`"),
    "half a character": (lambda: saved({"a\udc80": ONE}), "`a\\udc80`"),
    "an endless name": (lambda: saved({"a" * 10_000: ONE}), "aaa…`"),
    "lists in lists": (
        lambda: archive({"m/data.pkl": nested(100_000), "m/version": b"3"}),
        "list|truncated",
    ),
}


def watch() -> list[str]:
    """From now on, whatever Python writes in this process is added to the list."""
    written: list[str] = []

    def look(event: str, arguments: tuple) -> None:
        if event == "open" and set(str(arguments[1])) & set("wax+"):
            written.append(str(arguments[0]))
        elif event in WRITES:
            written.append(event)

    sys.addaudithook(look)
    return written


def obey(path: Path) -> list[str]:
    """Runs in a child: do what the payload asks for; what was seen of it."""
    written = watch()
    function, arguments = Payload(path).__reduce__()
    function(*arguments).close()
    return written


def watched(file: bytes) -> tuple[str, list[str], int]:
    """Runs in a child: the sentence, what was written, and the peak of memory."""
    import resource

    written = watch()
    try:
        upload.open_untrusted(file, None)
        refusal = ""
    except ExplainedError as error:
        refusal = str(error)
    return refusal, written, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kB on Linux")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused(name: str) -> None:
    make, sentence = HOSTILE[name]
    refusal, written, peak_bytes = child_process.call(
        "tests.app.lessons.checkpoints.test_upload:watched",
        make(),
        seconds=HOUR,
        memory_bytes=upload.MEMORY_BYTES,
        hostile=True,
    )
    assert any(part in refusal for part in sentence.split("|")), refusal
    assert "Traceback" not in refusal
    assert "\n" not in refusal
    assert len(refusal) < 400
    assert written == []
    assert peak_bytes < GIGABYTE


def test_the_payload_is_real_and_the_watch_sees_it(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    assert child_process.call(
        "tests.app.lessons.checkpoints.test_upload:obey", marker
    ) == [str(marker)]
    assert marker.exists()


def test_too_large_is_refused_unopened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "call", None)
    with pytest.raises(ExplainedError, match="20 MB"):
        upload.open_safely(bytes(upload.MAX_BYTES + 1), "a.pt")


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/root/a.pt", "a\\b.pt", "..", "a\n.pt", "a\0.pt"]
)
def test_paths_in_names_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "call", None)
    with pytest.raises(ExplainedError, match=r"model\.pt"):
        upload.open_safely(GOOD, name)


def test_a_stuck_file_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "SECONDS", 0.0)
    with pytest.raises(ExplainedError, match=r"\b0 s"):
        upload.open_safely(GOOD, "a.pt")


def test_what_was_checked_is_what_is_loaded() -> None:
    file = zip64(listed=GOOD, loaded=saved([ONE]))
    assert torch.load(io.BytesIO(file), weights_only=True) == [ONE]
    opened = upload.open_untrusted(file, None)
    assert opened.checkpoint is not None
    loaded = torch.load(io.BytesIO(opened.checkpoint), weights_only=True)
    assert all(torch.equal(loaded[name], tensor) for name, tensor in weights().items())


@pytest.mark.parametrize("device", ["c\ud800", "cud\u202e", "[a](b)", "b" * 30])
def test_odd_devices_are_not_repeated(device: str) -> None:
    opened = upload.open_untrusted(said_to_be_from(device), None)
    assert {info.device for info in opened.tensors} == {"not recorded"}
