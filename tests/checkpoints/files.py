"""Files to upload: checkpoints as people save them, and what only looks like one."""

import io
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


def archive(compression: int = zipfile.ZIP_STORED, **entries: bytes) -> bytes:
    """A zip archive; in names, "__" stands for "/"."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, content in entries.items():
            target.writestr(name.replace("__", "/"), content)
    return file.getvalue()


def header(text: str, length: int | None = None) -> bytes:
    """A file of safetensors that is all header."""
    return struct.pack("<Q", len(text) if length is None else length) + text.encode()


def nested(levels: int) -> bytes:
    """A pickle of lists in lists in lists."""
    return b"\x80\x02" + b"]" * levels + b"a" * (levels - 1) + b"."


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
