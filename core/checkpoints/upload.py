"""A checkpoint that a stranger sent: opened without trust, and without running it.

`open_safely` is what the lab worker calls. It opens the file in a process of its own,
with little memory and time, after looking at its structure from outside. Nothing is
written anywhere, and torch.load is never called but with weights_only=True.
"""

import io
import pickle
import re
import struct
import zipfile
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from core.checkpoints.match import match
from core.checkpoints.results import Opened
from core.checkpoints.round_trip import read
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
    b"\x89HDF": "an HDF5 file, as Keras writes",
    b"GGUF": "a GGUF file, as llama.cpp reads",
    b"\x1f\x8b": "a gzip archive",
    b"\x80": "a plain pickle, which is a program",
    b"": "something that does not begin like one",
}
ADVICE = (
    "Choose a file of torch.save(model.state_dict(), ...) or of safetensors, with the "
    "weights of a trained model."
)


def open_safely(data: bytes, name: str, model: str | None = None) -> Opened:
    """The checkpoint in `data`, held against `model`, or whichever fits best.

    `name` is what the file was called. Raises ExplainedError, one sentence and what to
    do, for whatever is not a checkpoint of one of our architectures.
    """
    if len(data) > MAX_BYTES:
        raise _refusal(
            f"The file has {len(data) / 1e6:,.0f} MB, and more than "
            f"{MAX_BYTES / 1e6:.0f} MB are not opened here: our models have less than 1"
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
            hostile=True,
        )
    except sandbox.ChildDiedError as error:
        raise _refusal(
            f"Opening the file in a process of its own failed. {error} Nothing else "
            "was harmed; the file is not a checkpoint of these models"
        ) from None


def open_untrusted(data: bytes, model: str | None) -> Opened:
    """Runs in the child."""
    try:
        kind, content, saved_from = _read(data)
        notes: list[str] = []
        tensors = _strip_prefixes(_tensors(content, notes), notes)
        _check_values(tensors)
        return match(kind, tensors, saved_from, notes, model)
    except ExplainedError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            limit = f"{MEMORY_BYTES / 1e6:.0f} MB that it may have"
            raise _refusal(f"Opening it takes more memory than the {limit}") from None
        raise _damaged(f"reading it ended with a {type(error).__name__}") from None


def _refusal(why: str) -> ExplainedError:
    return ExplainedError(f"{why}. {ADVICE}")


def _damaged(why: str) -> ExplainedError:
    return ExplainedError(
        f"The file is truncated or damaged: {why}. Copy or download it again, and "
        "compare its size with the original's."
    )


# Before it is opened


def _read(data: bytes) -> tuple[str, Any, dict[int, str]]:
    """The format, what is in the file, and the devices that it was saved from."""
    if not data:
        raise ExplainedError("The file is empty. Copy or download it again.")
    if data.startswith(b"PK"):
        _check_zip(data)
        return "torch.save, zip", *_read_torch(data)
    if data.startswith(LEGACY):
        return "torch.save, the format before torch 1.6", *_read_torch(data)
    if data[8:9] == b"{":
        return "safetensors", _read_safetensors(data), {}
    what = next(kind for start, kind in KINDS.items() if data.startswith(start))
    raise _refusal(f"This is not a checkpoint but {what}")


def _check_zip(data: bytes) -> None:
    """Refuse an archive that torch.save has not written, before it is unpacked."""
    entries = zipfile.ZipFile(io.BytesIO(data)).infolist()
    sizes = {entry.filename: entry.file_size for entry in entries}
    index = [n for n in sizes if re.fullmatch(r"[^/]+/data\.pkl", n)]
    script = [n for n in sizes if n.endswith("constants.pkl") or "/code/" in n]
    # From the root of the disk, or up from the archive's own folder.
    outside = [n for n in sizes if re.search(r"^[/\\]|(^|[/\\])\.\.([/\\]|$)", n)]
    compressed = any(entry.compress_type for entry in entries)
    for unlike, why in (
        (len(entries) > MAX_ENTRIES + 20, f"it has {len(entries):,} entries"),
        (compressed, "it is compressed, as a zip bomb is"),
        (len(sizes) < len(entries), "two entries have one name"),
        (sum(sizes.values()) > len(data), "it is truncated, or lies about its sizes"),
        (outside, "an entry leads out of its folder"),
        (script, "it is of TorchScript, a program with its weights"),
        (not index, "it has no data.pkl"),
        (
            sum(sizes[n] for n in index) > MAX_INDEX_BYTES,
            "its data.pkl has megabytes, where names and shapes alone take 2 kB",
        ),
    ):
        if unlike:
            raise _refusal(f"This archive is not one of torch.save: {why}")


def _read_torch(data: bytes) -> tuple[Any, dict[int, str]]:
    try:
        return read(data)
    except pickle.UnpicklingError:
        unsafe = torch.serialization.get_unsafe_globals_in_checkpoint
        called = ", ".join(map(_shown, sorted(unsafe(io.BytesIO(data)))[:3]))
        if not called:
            raise
        raise _refusal(
            "The file holds more than tensors: to open it, Python would have to call "
            f"{called}. weights_only=True refuses that, and nothing was run"
        ) from None


def _read_safetensors(data: bytes) -> dict[str, Tensor]:
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise _damaged(f"its header claims {length:,} bytes, more than there are")
    return safetensors.torch.load(data)


# What is in it


def _tensors(content: Any, notes: list[str]) -> dict[str, Tensor]:
    """The state_dict in what was loaded, out of the usual wrappers."""
    for _ in WRAPPERS:
        if not isinstance(content, dict):
            raise _refusal(
                f"The file holds one {type(content).__name__}, not a state_dict, which "
                "is a dictionary of names and tensors"
            )
        inside = [key for key in WRAPPERS if isinstance(content.get(key), dict)]
        if not inside:
            break
        beside = [_shown(key) for key in list(content)[:LISTED] if key != inside[0]]
        rest = f"; beside it, and not used: {', '.join(beside)}" if beside else ""
        notes.append(f"The state_dict was found under `{inside[0]}`{rest}.")
        content = content[inside[0]]
    if len(content) > MAX_ENTRIES:
        raise _refusal(
            f"The file has {len(content):,} entries, and more than {MAX_ENTRIES:,} are "
            "not read here: our models have 6 and 26"
        )
    tensors = {key: each for key, each in content.items() if isinstance(each, Tensor)}
    if not tensors:
        raise _refusal("There is no tensor in the file")
    if others := [_shown(key) for key in content if key not in tensors]:
        notes.append(f"Not tensors, and left out: {', '.join(others[:LISTED])}.")
    for name in tensors:
        if not (isinstance(name, str) and name.isprintable() and len(name) <= MAX_NAME):
            raise _refusal(f"A name in the file is {_shown(name)}, which no layer has")
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
        plain = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested
        for odd, what in (
            (not plain, "is a tensor of a special class"),
            (tensor.layout != torch.strided, "is sparse"),
            (tensor.is_quantized, "is quantized"),
            (tensor.is_complex(), "holds complex numbers"),
            (tensor.is_meta, "was saved from the meta device, without its numbers"),
        ):
            if odd:
                raise _refusal(f"{_shown(name)} {what}")
        size, stored = tensor.nbytes, tensor.untyped_storage().nbytes()
        claimed += size
        if claimed > MAX_TENSOR_BYTES or size > stored:
            raise _refusal(
                f"{_shown(name)} claims {size / 1e6:,.3g} MB and has "
                f"{stored / 1e6:,.3g} MB in the file: it would grow when it is copied"
            )
        if infinite := int((~torch.isfinite(tensor)).sum()):
            raise _refusal(
                f"{_shown(name)} has {infinite:,} numbers that are NaN or infinite, so "
                "its training has overflowed and the model would answer nothing"
            )


def _shown(name: object) -> str:
    """A name from a stranger's file, harmless on a page."""
    text = re.sub(r"[^\w./\\ -]", "?", str(name)[:MAX_NAME], flags=re.ASCII)
    return f"`{text[:60]}{'…' if len(text) > 60 else ''}`"
