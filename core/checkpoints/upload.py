"""A checkpoint that a stranger sent: opened without trust, and without running it.

`open_safely` is what the lab worker calls. It opens the file in a process of its own,
with little memory and time, after looking at its structure from outside. Nothing is
written anywhere, and torch.load is never called but with weights_only=True.
"""

import io
import json
import pickle
import re
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from core import models
from core.checkpoints.results import Opened
from core.checkpoints.round_trip import NO_SAFETENSORS, describe, read
from core.config import IMAGE_MODELS
from core.errors import ExplainedError, is_out_of_memory
from core.jobs import sandbox

MAX_BYTES = 20_000_000  # of a file; our models take less than half a megabyte
MAX_ENTRIES = 1000  # tensors in it; our models have 6 and 26
MAX_TENSOR_BYTES = 100_000_000  # that its tensors may claim to have
MAX_NAME = 200  # characters
MAX_INDEX_BYTES = 2_000_000  # of the pickle with names and shapes; ours have 2,000
MEMORY_BYTES = 400_000_000  # that opening it may take
SECONDS = 20.0
LISTED = 20  # names in one list

# Under these keys, people keep a state_dict beside other things.
WRAPPERS = ("model_state_dict", "state_dict", "model", "net", "module")
PREFIXES = {
    "_orig_mod.": "torch.compile",
    "module.": "DataParallel",
    "model.": "a wrapper class",
}
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # torch < 1.6
KINDS = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file, as Keras writes",
    b"\x1f\x8b": "a gzip archive",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"GGUF": "a GGUF file, as llama.cpp reads",
    b"\x93NUMPY": "a NumPy array",
}
EXPECTED = "a file of torch.save(model.state_dict(), ...) or of safetensors"
DAMAGED = (
    "The file is truncated or damaged: {why}. Copy or download it again, and compare "
    "its size with the original's."
)


def open_safely(data: bytes, name: str, model: str | None = None) -> Opened:
    """The checkpoint in `data`, held against `model`, or whichever fits best.

    `name` is what the file was called. Raises ExplainedError, one sentence and what to
    do, for whatever is not a checkpoint of one of our architectures.
    """
    if len(data) > MAX_BYTES:
        raise ExplainedError(
            f"The file has {len(data) / 1e6:,.0f} MB, and more than "
            f"{MAX_BYTES / 1e6:.0f} MB are not opened here: a checkpoint of these "
            "models has less than 1 MB. Save the state_dict alone."
        )
    if re.search(r"[/\\\x00-\x1f]|\.\.", name):
        raise ExplainedError(
            f"The file's name {_shown(name)} has a path or a control character in it. "
            "Rename the file to something like model.pt."
        )
    try:
        return sandbox.call(
            "core.checkpoints.upload:open_untrusted",
            data,
            model,
            seconds=SECONDS,
            memory_bytes=MEMORY_BYTES,
        )
    except sandbox.ChildDiedError as error:
        raise ExplainedError(
            f"Opening the file in a process of its own failed. {error} Nothing else "
            "was harmed; the file is not a checkpoint of these models."
        ) from None


def open_untrusted(data: bytes, model: str | None) -> Opened:
    """Runs in the child."""
    try:
        return _open(data, model)
    except Exception as error:
        if isinstance(error, ExplainedError):
            raise
        if is_out_of_memory(error):
            raise ExplainedError(
                "Opening the file takes more memory than the "
                f"{MEMORY_BYTES / 1e6:.0f} MB that it may have. A checkpoint of these "
                "models takes less than 1 MB."
            ) from None
        raise ExplainedError(
            DAMAGED.format(why=f"reading it ended with a {type(error).__name__}")
        ) from None


def _open(data: bytes, model: str | None) -> Opened:
    saved_from: dict[int, str] = {}
    if not data:
        raise ExplainedError("The file is empty. Copy or download it again.")
    if data.startswith(b"PK"):
        _check_zip(data)
        kind = "torch.save, zip"
        content, saved_from = _read_torch(data)
    elif data.startswith(LEGACY):
        kind = "torch.save, the format before torch 1.6"
        content, saved_from = _read_torch(data)
    elif data[8:9] == b"{":
        kind = "safetensors"
        content = _read_safetensors(data)
    else:
        raise ExplainedError(_wrong_type(data))
    notes: list[str] = []
    tensors = _strip_prefixes(_tensors(content, notes), notes)
    _check_values(tensors)
    return _fit(kind, tensors, saved_from, notes, model)


# Before it is opened


def _wrong_type(data: bytes) -> str:
    for start, kind in KINDS.items():
        if data.startswith(start):
            return f"This is {kind}, not a checkpoint. Choose {EXPECTED}."
    if data[:1] == b"\x80" and data[1:2] <= b"\x05":
        return (
            "This is a plain pickle, which is a program, and it is not opened here. "
            "Save the weights with torch.save(model.state_dict(), ...)."
        )
    return f"This is not a checkpoint: it does not begin like one. Choose {EXPECTED}."


def _check_zip(data: bytes) -> None:
    """Refuse an archive that torch.save has not written, before it is unpacked."""
    try:
        entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        why = "its table of contents, at the end of the archive, can't be read"
        raise ExplainedError(DAMAGED.format(why=why)) from None
    if len(entries) > MAX_ENTRIES + 20:
        raise ExplainedError(_too_many(len(entries)))
    unpacked = sum(entry.file_size for entry in entries)
    if any(entry.compress_type for entry in entries):
        raise ExplainedError(
            f"The archive has {len(data) / 1e6:,.2g} MB and claims to unpack to "
            f"{unpacked / 1e6:,.3g} MB, like a zip bomb: torch.save never compresses. "
            "It was not unpacked."
        )
    if unpacked > len(data):
        raise ExplainedError(DAMAGED.format(why="its parts do not fit into it"))
    names = [entry.filename for entry in entries]
    for name in names:
        if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name):
            raise ExplainedError(
                f"The archive has an entry that leads out of its folder, "
                f"{_shown(name)}. torch.save writes none; nothing was unpacked."
            )
    if len(set(names)) < len(names):
        raise ExplainedError("The archive has two entries of one name: not torch.save.")
    if any(name.endswith("constants.pkl") or "/code/" in name for name in names):
        raise ExplainedError(
            "This is a TorchScript archive: a program with its weights. "
            "Save model.state_dict() instead."
        )
    index = [
        each for each in entries if re.fullmatch(r"[^/]+/data\.pkl", each.filename)
    ]
    if sum(each.file_size for each in index) > MAX_INDEX_BYTES:
        raise ExplainedError(
            f"The list of names and shapes alone has {index[0].file_size / 1e6:,.3g} "
            "MB, where a checkpoint of these models has 2 kB. It was not read."
        )
    if not index:
        raise ExplainedError(
            "This is a zip archive, but not one of torch.save: it has no data.pkl. "
            f"Choose {EXPECTED}."
        )


def _read_torch(data: bytes) -> tuple[Any, dict[int, str]]:
    try:
        return read(data)
    except pickle.UnpicklingError:
        called = ""
        if data.startswith(b"PK"):
            unsafe = torch.serialization.get_unsafe_globals_in_checkpoint
            names = sorted(unsafe(io.BytesIO(data)))
            called = ", ".join(_shown(each) for each in names[:3])
        if not called:
            raise
        raise ExplainedError(
            f"The file holds more than tensors: to open it, Python would have to call "
            f"{called}. weights_only=True refuses that, and nothing was run. If it is "
            "a whole model of yours, save model.state_dict() instead."
        ) from None


def _read_safetensors(data: bytes) -> dict[str, Tensor]:
    try:
        import safetensors.torch
    except ImportError:
        raise ExplainedError(NO_SAFETENSORS) from None
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        why = f"its header claims {length:,} bytes, more than there are"
        raise ExplainedError(DAMAGED.format(why=why))
    header = json.loads(data[8 : 8 + length])
    if len(header) > MAX_ENTRIES + 1:
        raise ExplainedError(_too_many(len(header)))
    try:
        return safetensors.torch.load(data)
    except safetensors.SafetensorError:
        why = "its header does not fit the numbers after it"
        raise ExplainedError(DAMAGED.format(why=why)) from None


# What is in it


def _tensors(content: Any, notes: list[str]) -> dict[str, Tensor]:
    """The state_dict in what was loaded, out of the usual wrappers."""
    for _ in WRAPPERS:
        if not isinstance(content, dict):
            raise ExplainedError(
                f"The file holds one {type(content).__name__}, not a state_dict, which "
                "is a dictionary of names and tensors. Save model.state_dict()."
            )
        inside = [key for key in WRAPPERS if isinstance(content.get(key), dict)]
        if not inside:
            break
        beside = [_shown(key) for key in list(content)[:LISTED] if key != inside[0]]
        rest = f"; beside it, and not used: {', '.join(beside)}" if beside else ""
        notes.append(f"The state_dict was found under `{inside[0]}`{rest}.")
        content = content[inside[0]]
    if len(content) > MAX_ENTRIES:
        raise ExplainedError(_too_many(len(content)))
    tensors = {key: each for key, each in content.items() if isinstance(each, Tensor)}
    if not tensors:
        raise ExplainedError(
            "There is no tensor in the file, where a state_dict has one for each "
            "layer's weights. Save model.state_dict()."
        )
    if others := [_shown(key) for key in content if key not in tensors]:
        notes.append(f"Not tensors, and left out: {', '.join(others[:LISTED])}.")
    for name in tensors:
        if not isinstance(name, str) or len(name) > MAX_NAME:
            raise ExplainedError(
                f"A name in the file is {_shown(name)}, which no layer is called: "
                f"names are texts of at most {MAX_NAME} characters."
            )
    return tensors


def _strip_prefixes(tensors: dict[str, Tensor], notes: list[str]) -> dict[str, Tensor]:
    """Names without what DataParallel and torch.compile put before all of them."""
    for _ in PREFIXES:
        for prefix, origin in PREFIXES.items():
            if all(name.startswith(prefix) for name in tensors):
                notes.append(f"All names began with `{prefix}`, as {origin} has them.")
                tensors = {n.removeprefix(prefix): t for n, t in tensors.items()}
    return tensors


def _check_values(tensors: dict[str, Tensor]) -> None:
    """Refuse what is no plain tensor of finite numbers."""
    claimed = 0
    for name, tensor in tensors.items():
        wrong = ""
        if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.is_nested:
            wrong = "is a tensor of a special class"
        elif tensor.layout != torch.strided:
            wrong = "is sparse"
        elif tensor.is_quantized:
            wrong = "is quantized"
        elif tensor.is_complex():
            wrong = "holds complex numbers"
        elif tensor.is_meta:
            wrong = "has a shape but no numbers: it was saved from the meta device"
        if wrong:
            raise ExplainedError(
                f"{_shown(name)} {wrong}, where these models have plain numbers. "
                "Save the state_dict of the model as it was trained."
            )
        size = tensor.numel() * tensor.element_size()
        claimed += size
        stored = tensor.untyped_storage().nbytes()
        if claimed > MAX_TENSOR_BYTES or size > stored:
            raise ExplainedError(
                f"{_shown(name)} claims {size / 1e6:,.3g} MB and has "
                f"{stored / 1e6:,.3g} MB in the file: it would grow when it is copied. "
                "It was not copied. Save the state_dict of a trained model."
            )
        if not torch.isfinite(tensor).all():
            count = int((~torch.isfinite(tensor)).sum())
            raise ExplainedError(
                f"{_shown(name)} has {count:,} numbers that are NaN or infinite, so "
                "the model would answer nothing: its training has overflowed. "
                "Load a checkpoint from before that."
            )


# Against an architecture


def _fit(
    kind: str,
    tensors: dict[str, Tensor],
    saved_from: dict[int, str],
    notes: list[str],
    model: str | None,
) -> Opened:
    """The file beside the architecture that was asked for, or that is most alike."""

    def shapes(state: dict[str, Tensor]) -> set[tuple[int, ...]]:
        return {tuple(tensor.shape) for tensor in state.values()}

    def likeness(name: str) -> float:
        ours, theirs = shapes(_expected(name)), shapes(tensors)
        return len(ours & theirs) / len(ours | theirs)

    model = model or max(IMAGE_MODELS, key=likeness)
    expected = _expected(model)
    renamed = {}
    if set(expected) != set(tensors):
        renamed = _rename(tensors, expected)
    named = {renamed.get(name, name): tensor for name, tensor in tensors.items()}
    missing = [name for name in expected if name not in named]
    unexpected = [name for name in named if name not in expected]
    misshapen = [
        (name, _form(named[name]), _form(tensor))
        for name, tensor in expected.items()
        if name in named and not _alike(named[name], tensor)
    ]
    checkpoint = None
    if not missing and not unexpected and not misshapen:
        for cast in sorted({str(t.dtype) for t in named.values() if _is_cast(t)}):
            notes.append(f"The {cast.removeprefix('torch.')} numbers became float32.")
        buffer = io.BytesIO()
        torch.save(
            {
                name: named[name].detach().to(tensor.dtype, copy=True).contiguous()
                for name, tensor in expected.items()
            },
            buffer,
        )
        checkpoint = buffer.getvalue()
    return Opened(
        kind,
        describe(tensors, saved_from),
        tuple(notes),
        model,
        tuple(missing),
        tuple(unexpected),
        tuple(misshapen),
        tuple(renamed.items()),
        checkpoint,
    )


def _expected(model: str) -> dict[str, Tensor]:
    """Names and shapes of an architecture, without its numbers."""
    with torch.device("meta"):
        return models.build(model).state_dict()


def _rename(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, str]:
    """Their names to ours, where shapes leave no doubt; else {}.

    Either all shapes agree in order, or each (last part of the name, shape) is there
    once: safetensors sorts by name, so that the order of the layers is lost.
    """
    if [t.shape for t in tensors.values()] == [t.shape for t in expected.values()]:
        return dict(zip(tensors, expected, strict=True))

    def by_form(state: dict[str, Tensor]) -> Iterator[tuple[tuple, str]]:
        for name, tensor in state.items():
            yield (name.rpartition(".")[2], tuple(tensor.shape)), name

    theirs, ours = dict(by_form(tensors)), dict(by_form(expected))
    once = len(theirs) == len(tensors) and len(ours) == len(expected)
    if once and set(theirs) == set(ours):
        return {theirs[form]: ours[form] for form in theirs}
    return {}


def _alike(theirs: Tensor, ours: Tensor) -> bool:
    """Whether a tensor can take the place: floats for floats, in the same shape."""
    kinds = theirs.is_floating_point() == ours.is_floating_point()
    return kinds and theirs.shape == ours.shape and theirs.dtype != torch.bool


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype != torch.float32


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"


def _shown(name: object) -> str:
    """A name from a stranger's file, harmless on a page."""
    text = re.sub(r"[^\w./\\ -]", "?", str(name)[: MAX_NAME + 1], flags=re.ASCII)
    return f"`{text[:60]}{'…' if len(text) > 60 else ''}`"


def _too_many(count: int) -> str:
    return (
        f"The file has {count:,} entries, and more than {MAX_ENTRIES:,} are not read "
        "here: a checkpoint of these models has 6 or 26."
    )
