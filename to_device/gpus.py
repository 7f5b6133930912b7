"""GPUs that a dry run can stand in for, from the dated table in gpus.toml."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from to_device import builds
from to_device.errors import ExplainedError

FILE = Path(__file__).with_name("gpus.toml")
MEBIBYTE = 1 << 20
NEWER_CUBLAS = (9, 0)  # from this capability on, cuBLAS takes a larger workspace
BFLOAT16 = (8, 0)  # the first capability with arithmetic in bfloat16


@dataclass(frozen=True)
class GPU:
    """A GPU as torch.cuda describes it. Two figures are the least and the most."""

    title: str  # what people call it: "RTX 4090"
    name: str  # what torch.cuda.get_device_name returns
    capability: tuple[int, int]
    mebibytes: tuple[int, int]  # the total memory
    processors: int
    threads: int  # that a processor has at once, at most
    l2_mebibytes: int

    @property
    def usable(self) -> tuple[int, int]:
        """Bytes that are left for torch's tensors, beside CUDA and cuBLAS."""
        least, most = table()["context_mebibytes"]
        newer = self.capability >= NEWER_CUBLAS
        key = "workspace_bytes_from_9_0" if newer else "workspace_bytes"
        return (
            (self.mebibytes[0] - most) * MEBIBYTE - table()[key],
            (self.mebibytes[1] - least) * MEBIBYTE,
        )

    @property
    def has_bfloat16(self) -> bool:
        """Whether it computes in bfloat16, which older GPUs emulate slowly."""
        return self.capability >= BFLOAT16

    def why_no_code(self, torch: str) -> str:
        """A sentence if no build of this version of torch runs on the GPU, else ""."""
        major, minor = self.capability
        last = {
            cuda: builds.table()["last"].get(cuda, torch)
            for cuda, architectures in builds.releases("x86_64")
            if builds.runs_on(architectures, f"sm_{major}{minor}")
        }
        if any(
            builds.version(until)[:2] >= builds.version(torch)[:2]
            for until in last.values()
        ):
            return ""
        release = ".".join(map(str, builds.version(torch)[:2]))
        sentence = (
            f"No build of torch {release} has code for the {self.title} (compute "
            f"capability {major}.{minor})."
        )
        if not last:
            return sentence
        cuda, until = max(last.items(), key=lambda item: builds.version(item[1]))
        return (
            f"{sentence} The last torch that has is {until}, with CUDA {cuda}: add "
            f"--index-url https://download.pytorch.org/whl/{builds.index(cuda)} to "
            f"pip install torch=={until}."
        )


@cache
def table() -> dict[str, Any]:
    """The content of gpus.toml."""
    return tomllib.loads(FILE.read_text("utf-8"))


@cache
def known() -> tuple[GPU, ...]:
    """The GPUs of the table, the one with the least memory first."""
    gpus = (
        GPU(
            title,
            row["name"],
            tuple(row["capability"]),
            tuple(row["mebibytes"]),
            row["processors"],
            row["threads"],
            row["l2_mebibytes"],
        )
        for title, row in table()["gpus"].items()
    )
    return tuple(sorted(gpus, key=lambda gpu: gpu.mebibytes))


def find(text: str) -> GPU:
    """The GPU that a name means: its title, or what torch or nvidia-smi call it.

    Raises ExplainedError if the name means none of the table's GPUs, or several.
    """
    wanted = _key(text)
    exact = [gpu for gpu in known() if wanted in (_key(gpu.title), _key(gpu.name))]
    # "A100" stands for both A100s, but "L4" is another GPU than the L40.
    found = exact or [
        gpu for gpu in known() if wanted and wanted in map(_key, gpu.title.split(" "))
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(gpu.title for gpu in found or known())
    if found:
        raise ExplainedError(f"{text} could be one of these GPUs: {names}.")
    raise ExplainedError(
        f"There are no figures for the GPU {text!r}, only for these: {names}. Give its "
        "memory instead, such as --memory 8GB."
    )


def smallest(size: int) -> GPU | None:
    """The GPU with the least memory whose tensors can surely take `size` bytes."""
    return next((gpu for gpu in known() if gpu.usable[0] >= size), None)


def _key(text: str) -> str:
    """A GPU's name without its maker, its kind, spaces, and hyphens."""
    short = re.sub(r"nvidia|geforce|tesla", "", text.casefold())
    return re.sub(r"[\s_-]", "", short)
