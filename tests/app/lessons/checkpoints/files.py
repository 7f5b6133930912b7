"""Files to upload: checkpoints as people save them, and what only looks like one."""

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from core import models


def saved(content: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file, **options)
    return file.getvalue()


def built(model: str) -> nn.Module:
    torch.manual_seed(0)
    return models.build(model)


def weights(model: str = "ann") -> dict[str, Tensor]:
    return dict(built(model).state_dict())


def with_first(change: Callable[[Tensor], Tensor]) -> bytes:
    """A checkpoint of the ANN, its first weights changed."""
    state = weights()
    return saved({**state, "layers.1.weight": change(state["layers.1.weight"])})


def archive(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """A zip archive of entries by their names."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, content in entries.items():
            target.writestr(name, content)
    return file.getvalue()


def header(text: str, length: int | None = None) -> bytes:
    """A file of safetensors that is all header."""
    return struct.pack("<Q", len(text) if length is None else length) + text.encode()


def nested(levels: int) -> bytes:
    """A pickle of lists in lists in lists."""
    return b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."


def many_dimensions(count: int = 100_000) -> bytes:
    """A file of safetensors: one number, in a shape of ones."""
    entry = {"dtype": "F32", "shape": [1] * count, "data_offsets": [0, 4]}
    return header(json.dumps({"a": entry}, separators=(",", ":"))) + bytes(4)


def made_on_a_device() -> bytes:
    """A zip whose index calls torch.cuda.FloatTensor(1_000_000_000)."""
    call = b"ctorch.cuda\nFloatTensor\nJ\x00\xca\x9a\x3b\x85R"
    index = b"\x80\x02}X\x01\x00\x00\x00a" + call + b"s."
    return archive({"m/data.pkl": index, "m/version": b"3\n"})


def endless_global() -> bytes:
    """A zip whose index asks for a storage with a name of 100,000 letters."""
    name = b"FloatStorage"
    return rewritten(saved({"a": torch.zeros(1)}), name, name + b"b" * 100_000)


def legacy_that_is_all_index() -> bytes:
    """The old format, of lists in lists in lists where names and shapes belong."""
    file = saved({"a": torch.zeros(1)}, _use_new_zipfile_serialization=False)
    before = file.index(b"type_sizes")
    return file[: file.index(b".", before) + 1] + nested(9_000_000)


def zip64(listed: bytes, loaded: bytes) -> bytes:
    """Two archives in one: zipfile finds the first, torch's reader the second.

    The end of an archive may point to a longer form of itself. Python takes what
    stands right before the pointer, others what it points to.
    """

    def longer(file: bytes) -> bytes:
        entries, size, start = struct.unpack("<10xHII2x", file[-22:])
        return struct.pack(
            "<IQHHIIQQQQ",
            *(0x06064B50, 44, 45, 45, 0, 0),
            *(entries, entries, size, start),
        )

    loaded, listed = (rewritten(file, b"", b"") for file in (loaded, listed))
    first = loaded[:-22] + longer(loaded)
    pointer = struct.pack("<IIQI", 0x07064B50, 0, len(loaded) - 22, 1)
    end = struct.pack("<IHHHHIIH", 0x06054B50, *[0xFFFF] * 4, *[0xFFFFFFFF] * 2, 0)
    return first + listed[:-22] + longer(listed) + pointer + end


def legacy_with_huge_storage() -> bytes:
    """The old format names a storage's size before its bytes: this one claims 8 GB."""
    file = saved({"a": torch.zeros(1000)}, _use_new_zipfile_serialization=False)
    size, claimed = b"M\xe8\x03", b"J\xff\xff\xff\x7f"
    assert size in file
    return file.replace(size, claimed)


def rewritten(file: bytes, old: bytes, new: bytes) -> bytes:
    """A zip archive with other bytes in its entries."""
    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(file)) as source,
        zipfile.ZipFile(changed, "w") as target,
    ):
        for entry in source.infolist():
            target.writestr(entry.filename, source.read(entry).replace(old, new))
    return changed.getvalue()


def said_to_be_from(device: str) -> bytes:
    """The checkpoint of the ANN, its storages marked as saved from there."""

    def text(value: str) -> bytes:  # as pickle writes it
        name = value.encode("utf-8", "surrogatepass")
        return b"X" + len(name).to_bytes(4, "little") + name

    return rewritten(GOOD, text("cpu"), text(device))


def lying_about_its_size() -> bytes:
    """A zip whose index says that 1,200 bytes hold 20 million floats."""
    file = saved({"a": torch.zeros(300)})
    return rewritten(file, b"M\x2c\x01", b"J\x00\x2d\x31\x01")


class Payload:
    """An object whose pickle is the order: call open(path, "w")."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return open, (str(self.path), "w")


def quantized() -> Tensor:
    return torch.quantize_per_tensor(torch.zeros(128, 784), 0.1, 0, torch.qint8)


def sparse() -> Tensor:
    return torch.eye(4).to_sparse()


GOOD = saved(weights())
TENSORS = safetensors.torch.save(weights())
