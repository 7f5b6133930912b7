"""What can go wrong with checkpoints, done on purpose and without harm.

Each function really makes the mistake and returns what PyTorch said.
"""

import io
import pickletools
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch

from core import models
from core.checkpoints.results import Demonstration
from core.errors import ExplainedError
from core.jobs import sandbox
from core.state_dict import load

CPU = torch.device("cpu")
MESSAGE_CHARACTERS = 1200  # of PyTorch's own message; some list every layer


class Payload:
    """An object whose pickle is the order: call open(path, "w")."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return open, (str(self.path), "w")


def make_payload(path: Path) -> bytes:
    """What looks like a checkpoint, and would write a file if it were believed."""
    file = io.BytesIO()
    torch.save({"layers.1.weight": Payload(path)}, file)
    return file.getvalue()


def load_safely(file: bytes) -> str:
    """The message with which the safe way of loading refuses; empty if it does not."""
    return _refusal(lambda: torch.load(io.BytesIO(file), weights_only=True))


def pickle_is_a_program() -> Demonstration:
    """Load the payload the safe way, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        marker = Path(folder) / "written-by-a-checkpoint"
        file = make_payload(marker)
        message = sandbox.call("core.checkpoints.dangers:load_safely", file)
        written = marker.exists()
    if written or not message:
        raise ExplainedError(
            "The safe load did not refuse the payload. Do not open files from others "
            f"with this version of torch ({torch.__version__})."
        )
    return Demonstration(
        message,
        f"The file that it would have written, {marker}, does not exist.",
        disassemble(file),
    )


def disassemble(file: bytes) -> str:
    """The program in a file of torch.save, read without running it."""
    listing = io.StringIO()
    pickletools.dis(_pickle_in(file), listing)
    return listing.getvalue()


def _pickle_in(file: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/data.pkl"))
        return archive.read(name)


def saved_from_cuda(checkpoint: bytes, device: str) -> bytes:
    """The checkpoint with another device's name beside each tensor.

    A file names the device of each tensor as a text. Here that text alone is changed:
    so a machine without a GPU can make what one with a GPU would have saved.
    """

    def text(value: str) -> bytes:  # as pickle writes it
        return b"X" + len(value).to_bytes(4, "little") + value.encode()

    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(checkpoint)) as source,
        zipfile.ZipFile(changed, "w") as target,
    ):
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename.endswith("/data.pkl"):
                content = content.replace(text("cpu"), text(device))
            target.writestr(entry.filename, content)
    return changed.getvalue()


def cuda_on_cpu(checkpoint: bytes, model: str) -> Demonstration:
    """Load a file that asks for a GPU which is not here, first as it asks."""
    device = f"cuda:{torch.cuda.device_count()}"  # one more than there are
    file = saved_from_cuda(checkpoint, device)
    message = _refusal(lambda: torch.load(io.BytesIO(file), weights_only=True))

    opened = io.BytesIO(file)
    state_dict = torch.load(opened, map_location="cpu", weights_only=True)
    restored = models.build(model)
    restored.load_state_dict(state_dict)
    before = load(checkpoint, model, CPU).state_dict()
    after = restored.state_dict()
    same = all(torch.equal(before[name], after[name]) for name in before)
    if not message or not same:
        raise ExplainedError("This torch loads the file in another way.")
    return Demonstration(
        message,
        f"Every tensor in the file says {device}, which is not here.",
        right='With map_location="cpu" it loads: '
        f"all {len(state_dict)} tensors are as they were, bit for bit.",
    )


def wrong_architecture(checkpoint: bytes, model: str) -> Demonstration:
    """Load a checkpoint into the other model, strictly and then not."""
    other = next(name for name in models.MODELS if name != model)
    opened = io.BytesIO(checkpoint)
    state_dict = torch.load(opened, map_location="cpu", weights_only=True)
    message = _refusal(lambda: models.build(other).load_state_dict(state_dict))

    # Under names that no layer has, so that no shape can disagree.
    prefixed = {f"module.{name}": each for name, each in state_dict.items()}
    silent = models.build(model).load_state_dict(prefixed, strict=False)
    return Demonstration(
        message,
        f"{model.upper()} weights were loaded into the {other.upper()}.",
        right="With strict=False and names that begin with module., PyTorch "
        f"says nothing and leaves {len(silent.unexpected_keys)} of "
        f"{len(state_dict)} tensors out: the model is as untrained as before. "
        "Leave strict as it is, and correct the names.",
    )


def _refusal(work: Callable[[], object]) -> str:
    """The message of the exception that `work` ends with; empty if with none."""
    try:
        work()
    except Exception as error:
        message = str(error).replace("\x1b[1m", "").replace("\x1b[0m", "")
        cut = message[:MESSAGE_CHARACTERS]
        return f"{type(error).__name__}: {cut}{'…' if cut != message else ''}"
    return ""
