"""Open a checkpoint from a stranger without running any of it.

The lab worker calls `open_safely`. A child process then checks the file's structure and
opens it. The child has little memory and time, no device and no right to write.
torch.load always gets weights_only=True. The child sends numbers, not a file. A process
with a device gets a new file with these numbers, after a check that they and the
model's outputs are finite.
"""

import io
import pickle
import pickletools
import re
import struct
import zipfile
from dataclasses import replace
from itertools import chain
from typing import IO, Any

import safetensors.torch
import torch
from torch import Tensor

from core import models, state_dict
from core.config import IMAGE_MODELS
from core.data import sprites
from core.errors import is_out_of_memory
from core.jobs import child_process
from core.lessons.checkpoints.checkpoints_result import Opened
from core.lessons.checkpoints.round_trip import describe, read
from to_device.errors import ExplainedError, plain, quoted

MAX_BYTES = 20_000_000  # per file; our models take less than half a megabyte
MAX_ENTRIES = 1000  # tensors in a file; our models have 6 and 26
MAX_TENSOR_BYTES = 100_000_000  # the sum over a file's tensors, by their shapes
MAX_NAME = 200  # characters of a tensor's name
MAX_NOTE = 5_000  # characters of a sentence on what was left out
MAX_DIMENSIONS = 8  # per tensor; ours have up to 4, and torch is slow with many
MAX_INDEX_BYTES = 500_000  # names and shapes in a file; our models' take 2,000
MEMORY_BYTES = 400_000_000  # memory limit of the process that opens a file
SECONDS = 5.0  # time limit of that process
LISTED = 20  # a message lists at most this many names
DRAWINGS = 20  # images on which an uploaded model is tried

# The keys under which many files have a state_dict, beside other entries.
WRAPPERS = ("model_state_dict", "state_dict", "model", "net", "module")
PREFIXES = {  # prefixes that all names in a file may have, and what adds them
    "_orig_mod.": "torch.compile",
    "module.": "DataParallel",
    "model.": "a wrapper class",
}
# The name of a device, such as "cuda:0". A file may have any text instead of a name.
DEVICE = re.compile(r"\w{1,20}(:\d{1,3})?", re.A)
# Names of functions that a pickle can call. They make a tensor on a device, even if
# map_location says CPU.
ON_A_DEVICE = re.compile(r"torch\.\w+\.\w*Tensor|.*_device_tensor_.*")
# The first bytes of files from torch before 1.6.
LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
KINDS = {  # the first bytes of other files, and what to call these files
    b"\x89PNG": "a PNG image",
    b"\x89HDF": "an HDF5 file, perhaps from Keras",
    b"GGUF": "a GGUF file for llama.cpp",
    b"\x1f\x8b": "a gzip archive",
    b"\x80": "a plain pickle, which is a program",
    b"": "an unknown kind of file",
}


def open_safely(data: bytes, name: str, model: str | None = None) -> Opened:
    """Open the checkpoint in `data`; compare it with `model` or the most similar model.

    `name` is the file's name. Raises ExplainedError if the file is no checkpoint, or
    if the app refuses to open it.
    """
    if len(data) > MAX_BYTES:
        raise _refusal(
            f"The file is {len(data) / 1e6:,.0f} MB. The app opens files of up to "
            f"{MAX_BYTES / 1e6:.0f} MB, and its own models take up less than 1 MB"
        )
    if re.search(r"[/\\\x00-\x1f]|\.\.", name):
        raise ExplainedError(
            f"The file name {quoted(name)} contains a path or a control character. "
            "Rename the file to something like model.pt."
        )
    try:
        opened: Opened = child_process.call(
            "core.lessons.checkpoints.upload:open_and_send",
            data,
            model,
            seconds=SECONDS,
            memory_bytes=MEMORY_BYTES,
            hostile=True,
        )
        return _received(opened)
    except child_process.ChildDiedError as error:
        raise _refusal(
            f"The app could not open the file in a separate process. {error} Nothing "
            "else was affected. Perhaps the machine is very busy. Otherwise, the file "
            "is probably not a checkpoint of one of our models"
        ) from None


def open_untrusted(data: bytes, model: str | None) -> Opened:
    """The part of `open_safely` that runs in the child process."""
    try:
        kind, content, saved_from = _read(data)
        notes: list[str] = []
        tensors = _strip_prefixes(_tensors(content, notes), notes)
        _check_tensors(tensors)
        opened = match(kind, tensors, saved_from, notes, model)
        if opened.checkpoint is not None:
            _check_model(opened.checkpoint, opened.model)
        return opened
    except ExplainedError:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            limit = f"the limit of {MEMORY_BYTES / 1e6:.0f} MB"
            raise _refusal(f"Opening the file needs more memory than {limit}") from None
        raise ExplainedError(
            "The file is truncated or damaged: reading it raised "
            f"{type(error).__name__}. Copy or download the file again, and compare its "
            "size with the original's."
        ) from None


def open_and_send(data: bytes, model: str | None) -> Opened:
    """Like `open_untrusted`, with only the numbers of the checkpoint, one by one."""
    opened = open_untrusted(data, model)
    if opened.checkpoint is None:
        return opened
    tensors = state_dict.unpack(opened.checkpoint)
    numbers = (tensors[name].numpy().tobytes() for name in _expected(opened.model))
    return replace(opened, checkpoint=b"".join(numbers))


def _received(sent: Opened) -> Opened:
    """What `open_and_send` sent, with a new file.

    A file may have taken over the process that sent it. So nothing here is believed:
    texts that are drawn as Markdown may have no links, and lists have limits. Raises
    UnreadableAnswerError if this is nothing that `open_untrusted` returns.
    """
    names = [info.name for info in sent.tensors]
    names += [*sent.missing, *sent.unexpected, *chain(*sent.misshapen, *sent.renamed)]
    if (
        sent.model not in IMAGE_MODELS
        or max(map(len, (sent.tensors, sent.unexpected, sent.notes))) > MAX_ENTRIES
        or max(map(len, names), default=0) > MAX_NAME
    ):
        raise child_process.UnreadableAnswerError
    checkpoint = None
    if sent.checkpoint is not None:
        checkpoint = state_dict.pack(_from_numbers(sent.checkpoint, sent.model))
    return replace(
        sent,
        format=plain(sent.format, MAX_NAME),
        notes=tuple(plain(note, MAX_NOTE) for note in sent.notes),
        checkpoint=checkpoint,
    )


def numbers_size(model: str) -> int:
    """Bytes of the numbers of the model's state_dict."""
    return sum(tensor.nbytes for tensor in _expected(model).values())


def _from_numbers(numbers: bytes, model: str) -> dict[str, Tensor]:
    """The model's tensors. Raises UnreadableAnswerError if these aren't its numbers."""
    if len(numbers) != numbers_size(model):
        raise child_process.UnreadableAnswerError
    tensors, rest = {}, io.BytesIO(numbers)
    for name, tensor in _expected(model).items():
        part = bytearray(rest.read(tensor.nbytes))
        tensors[name] = torch.frombuffer(part, dtype=tensor.dtype).view(tensor.shape)
        if not torch.isfinite(tensors[name]).all():
            raise child_process.UnreadableAnswerError
    return tensors


def _refusal(why: str) -> ExplainedError:
    return ExplainedError(
        f"{why}. Choose a file with the weights of a trained model, written by "
        "torch.save(model.state_dict(), ...) or by safetensors."
    )


# Reading the file; each kind of file is checked before torch.load opens it


def _read(data: bytes) -> tuple[str, Any, dict[int, str]]:
    """The file's format, then what `round_trip.read` returns: content and devices."""
    if not data:
        raise ExplainedError("The file is empty. Copy or download the file again.")
    if data.startswith(b"PK"):
        return "a zip file from torch.save", *_read_torch(_checked_zip(data))
    if data.startswith(LEGACY):
        _check_index(io.BytesIO(data), pickles=5)  # the tensors' values come later
        return "a torch.save file in torch's pre-1.6 format", *_read_torch(data)
    if data[8:9] == b"{":
        if struct.unpack("<Q", data[:8])[0] > MAX_INDEX_BYTES:
            raise _too_much_index()
        return "safetensors", safetensors.torch.load(data), {}
    kind = next(kind for start, kind in KINDS.items() if data.startswith(start))
    raise _refusal(f"This file is not a checkpoint but {kind}")


def _checked_zip(data: bytes) -> bytes:
    """Return a new copy of an archive from torch.save, and refuse other archives.

    Torch opens the copy, because an archive can have two tables of contents, and torch
    might read the table that zipfile has not read.
    """
    archive, checked = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    entries = archive.infolist()
    # torch ignores case in names, so names that differ only in case are the same.
    sizes = {entry.filename.lower(): entry.file_size for entry in entries}
    index = [n for n in sizes if re.fullmatch(r"[^/]+/data\.pkl", n)]
    script = [n for n in sizes if n.endswith("constants.pkl") or "/code/" in n]
    # Paths that begin at the disk's root, or leave the archive's own folder by "..".
    outside = [n for n in sizes if re.search(r"^[/\\]|(^|[/\\])\.\.([/\\]|$)", n)]
    compressed = any(entry.compress_type for entry in entries)
    for is_wrong, why in (
        (len(entries) > MAX_ENTRIES + 20, f"it has {len(entries):,} entries"),
        (compressed, "it is compressed, but torch.save never compresses files"),
        (len(sizes) < len(entries), "two entries have the same name"),
        (sum(sizes.values()) > len(data), "it is truncated or gives wrong sizes"),
        (outside, "an entry's path points outside the archive's own folder"),
        (script, "it was saved by TorchScript and holds a program, not only weights"),
        (not index, "it has no data.pkl"),
    ):
        if is_wrong:
            raise _refusal(f"This archive was not written by torch.save: {why}")
    with zipfile.ZipFile(checked, "w") as target:
        for entry in entries:
            content = archive.read(entry)
            if entry.filename.lower() in index:
                _check_index(io.BytesIO(content), pickles=1)
            target.writestr(entry.filename, content)
    return checked.getvalue()


def _check_index(file: IO[bytes], pickles: int) -> None:
    """Refuse a file whose first pickles are too long, or would use a device.

    `pickles` is the number of these pickles. They are read, but not run.
    """
    for _ in range(pickles):
        for operation, argument, _ in pickletools.genops(file):
            if file.tell() > MAX_INDEX_BYTES:
                raise _too_much_index()
            if operation.name != "GLOBAL":
                continue
            name = str(argument).replace(" ", ".")
            # torch takes minutes to write an error about a name of 100,000 letters.
            if len(name) > MAX_NAME or ON_A_DEVICE.fullmatch(name):
                raise _refusal(
                    f"The file asks for {quoted(name)}, which no state_dict contains"
                )


def _too_much_index() -> ExplainedError:
    return _refusal(
        "The names and shapes in the file take up more than "
        f"{MAX_INDEX_BYTES / 1e6:.1f} MB. In our models' files, they take up only 2 kB"
    )


def _read_torch(data: bytes) -> tuple[Any, dict[int, str]]:
    try:
        content, saved_from = read(data)
        texts = {place: str(device) for place, device in saved_from.items()}
        return content, {k: text for k, text in texts.items() if DEVICE.fullmatch(text)}
    except pickle.UnpicklingError:
        unsafe = torch.serialization.get_unsafe_globals_in_checkpoint
        called = ", ".join(map(quoted, sorted(unsafe(io.BytesIO(data)))[:3]))
        if not called:
            raise
        raise _refusal(
            "The file holds more than tensors. To open it, Python would have to call "
            f"{called}, and weights_only=True refuses such calls. Nothing was run"
        ) from None


# The tensors in the file


def _tensors(content: Any, notes: list[str]) -> dict[str, Tensor]:
    """The state_dict, which is the content itself or under a key of the content.

    `notes` gets sentences on that key and on all that was left out.
    """
    for _ in WRAPPERS:
        if not isinstance(content, dict):
            raise _refusal(
                f"The file holds a value of type {type(content).__name__}, not a "
                "state_dict. A state_dict is a dictionary of names and tensors"
            )
        inside = [key for key in WRAPPERS if isinstance(content.get(key), dict)]
        if not inside:
            break
        beside = [quoted(key) for key in list(content)[:LISTED] if key != inside[0]]
        notes.append(f"The state_dict was found under `{inside[0]}`.")
        if beside:
            notes[-1] += f" These other entries were not used: {', '.join(beside)}."
        content = content[inside[0]]
    if len(content) > MAX_ENTRIES:
        raise _refusal(
            f"The file has {len(content):,} entries. The app reads up to "
            f"{MAX_ENTRIES:,}, and its own models have 6 and 26"
        )
    tensors = {key: item for key, item in content.items() if isinstance(item, Tensor)}
    if not tensors:
        raise _refusal("The file contains no tensors")
    if others := [quoted(key) for key in content if key not in tensors]:
        names = ", ".join(others[:LISTED])
        notes.append(f"These entries are not tensors and were not used: {names}.")
    for name in tensors:
        if not (isinstance(name, str) and name.isprintable() and len(name) <= MAX_NAME):
            raise _refusal(f"The file uses the name {quoted(name)}, which no layer has")
    return tensors


def _strip_prefixes(tensors: dict[str, Tensor], notes: list[str]) -> dict[str, Tensor]:
    for _ in PREFIXES:
        for prefix, origin in PREFIXES.items():
            if all(name.startswith(prefix) for name in tensors):
                notes.append(f"Every name began with `{prefix}`, which {origin} adds.")
                tensors = {n.removeprefix(prefix): t for n, t in tensors.items()}
    return tensors


def _check_tensors(tensors: dict[str, Tensor]) -> None:
    """Refuse tensors that are too large, or of a special kind."""
    claimed = 0
    for name, tensor in tensors.items():
        plain = type(tensor) in (Tensor, torch.nn.Parameter) and not tensor.is_nested
        for is_odd, problem in (
            (
                tensor.dim() > MAX_DIMENSIONS,
                f"has {tensor.dim():,} dimensions, but the app reads tensors with up "
                f"to {MAX_DIMENSIONS} dimensions",
            ),
            (not plain, "is a tensor of a special class"),
            (tensor.layout != torch.strided, "is sparse"),
            (tensor.is_quantized, "is quantized"),
            (tensor.is_complex(), "holds complex numbers"),
            (tensor.is_meta, "was saved from the meta device, without its values"),
        ):
            if is_odd:
                raise _refusal(f"{quoted(name)} {problem}")
        size, stored = tensor.nbytes, tensor.untyped_storage().nbytes()
        claimed += size
        if claimed > MAX_TENSOR_BYTES or size > stored:
            raise _refusal(
                f"The tensors up to and including {quoted(name)} would need "
                f"{claimed / 1e6:,.3g} MB when copied, but the file has fewer bytes"
            )


def _check_model(checkpoint: bytes, name: str) -> None:
    """Refuse weights or model outputs that are not finite."""
    for tensor_name, tensor in state_dict.unpack(checkpoint).items():
        if infinite := int((~torch.isfinite(tensor)).sum()):
            raise _refusal(
                f"{quoted(tensor_name)} has {infinite:,} values that are NaN, "
                "infinite, or too large for float32, so the model can't be used"
            )
    model = state_dict.load(checkpoint, name, torch.device("cpu")).eval()
    drawings, _ = sprites.draw(DRAWINGS, seed=1)
    with torch.inference_mode():
        logits = model(drawings)
    if infinite := int((~torch.isfinite(logits)).any(dim=1).sum()):
        raise _refusal(
            f"For {infinite} of {DRAWINGS} images, the model's output is NaN or "
            "infinite. Some weights are far too large, or a variance is negative"
        )


# Comparison with our architectures


def match(
    kind: str,
    tensors: dict[str, Tensor],
    saved_from: dict[int, str],
    notes: list[str],
    model: str | None,
) -> Opened:
    """Compare a file's tensors with `model`, or else with the most similar model.

    `kind` is the file's format, `saved_from` comes from `round_trip.read`, and `notes`
    are sentences about the file.
    """
    model = model or max(IMAGE_MODELS, key=lambda name: _likeness(name, tensors))
    expected = _expected(model)
    renamed = {} if set(expected) == set(tensors) else _rename(tensors, expected)
    named = {renamed.get(name, name): tensor for name, tensor in tensors.items()}
    missing = tuple(name for name in expected if name not in named)
    unexpected = tuple(name for name in named if name not in expected)
    misshapen = tuple(
        (name, _form(named[name]), _form(tensor))
        for name, tensor in expected.items()
        if name in named and not _alike(named[name], tensor)
    )
    described = describe(tensors, saved_from)
    checkpoint = None
    if not missing and not unexpected and not misshapen:
        dtypes = {tensor.dtype for tensor in described if "float" in tensor.dtype}
        casts = sorted(dtypes - {"float32"})
        notes += [f"The {cast} values were converted to float32." for cast in casts]
        fitting = {
            # A new plain tensor gets the numbers, and nothing else of the stranger's.
            name: torch.empty(t.shape, dtype=t.dtype).copy_(named[name].detach())
            for name, t in expected.items()
        }
        checkpoint = state_dict.pack(fitting)
    return Opened(
        format=kind,
        tensors=described,
        notes=tuple(notes),
        model=model,
        missing=missing,
        unexpected=unexpected,
        misshapen=misshapen,
        renamed=tuple(renamed.items()),
        checkpoint=checkpoint,
    )


def _expected(model: str) -> dict[str, Tensor]:
    with torch.device("meta"):
        return models.build(model).state_dict()


def _likeness(model: str, tensors: dict[str, Tensor]) -> float:
    """The share of tensor shapes that the model and the file have in common: 0 to 1."""
    ours = {tensor.shape for tensor in _expected(model).values()}
    theirs = {tensor.shape for tensor in tensors.values()}
    return len(ours & theirs) / len(ours | theirs)


def _rename(tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, str]:
    """Map the file's names to the model's; {} if names and shapes don't match up.

    If both have the same shapes in the same order, the names are matched in this order.
    But safetensors sorts by name, so the order of the layers is lost. Then each form,
    (last part of the name, shape), must occur equally often in both. Names of one form
    are matched in sorted order, "conv2.weight" before "conv10.weight". In our models,
    only the counters of batch norm share a form, and they do nothing after training.
    """
    if [t.shape for t in tensors.values()] == [t.shape for t in expected.values()]:
        return dict(zip(tensors, expected, strict=True))

    def by_form(state: dict[str, Tensor]) -> dict[tuple, list[str]]:
        forms: dict[tuple, list[str]] = {}
        for name in sorted(state, key=_natural):
            form = name.rpartition(".")[2], tuple(state[name].shape)
            forms.setdefault(form, []).append(name)
        return forms

    theirs, ours = by_form(tensors), by_form(expected)
    if {f: len(theirs[f]) for f in theirs} != {f: len(ours[f]) for f in ours}:
        return {}
    pairs = (zip(theirs[form], ours[form], strict=True) for form in theirs)
    return dict(chain.from_iterable(pairs))


def _natural(name: str) -> list[str | int]:
    """A sort key that puts "conv2" before "conv10"."""
    parts = re.split(r"(\d+)", name)  # every second part is a number
    return [int(part) if i % 2 else part for i, part in enumerate(parts)]


def _alike(theirs: Tensor, ours: Tensor) -> bool:
    """Whether the shapes are equal, and both hold floats or both hold integers."""
    kinds = theirs.is_floating_point() == ours.is_floating_point()
    return kinds and theirs.shape == ours.shape and theirs.dtype != torch.bool


def _form(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
