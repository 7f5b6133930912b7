"""PyTorch's builds for NVIDIA GPUs, from the dated table in builds.toml.

Where torch is installed and carries such a table itself, `diagnose` reads torch's.
"""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("builds.toml")


@cache
def table() -> dict[str, Any]:
    """The content of builds.toml."""
    return tomllib.loads(FILE.read_text("utf-8"))


def releases(machine: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """CUDA version and architectures ("sm_90") of each build, the oldest first.

    `machine` is "x86_64" or "aarch64".
    """
    return tuple(
        (cuda, tuple(f"sm_{code}" for code in codes[machine]))
        for cuda, codes in table()["cuda"].items()
        if machine in codes
    )


def index(cuda: str) -> str:
    """The last part of the address that pip gets a build from: "cu130" for "13.0"."""
    return f"cu{cuda.replace('.', '')}"


@cache
def fields() -> dict[str, str]:
    """What texts may say of the builds, for their placeholders.

    `wheel` is the first build of the newest major version of CUDA, since a driver runs
    every minor version of a major version that it knows.
    """
    major, _, _ = list(table()["cuda"])[-1].partition(".")
    newest = [cuda for cuda in table()["cuda"] if cuda.startswith(f"{major}.")]
    older = [cuda for cuda in table()["cuda"] if cuda not in newest]
    ended, last = list(table()["ended"].items())[-1]
    return {
        "torch": table()["torch"],
        "cuda_major": major,
        "wheel": index(newest[0]),
        "driver": table()["drivers"][major],
        "older_cuda": older[-1],
        "older_wheel": index(older[-1]),
        "older_torch": table()["last"][older[-1]],
        "ended_cuda_major": ended.partition(".")[0],
        "ended_wheel": index(ended),
        "ended_torch": last,
    }


@cache
def _gpus() -> tuple[tuple[int, re.Pattern[str]], ...]:
    """Compute capability times 10, and what names a GPU that has it."""
    return tuple(
        (int(code), re.compile(rf"\b(?:{names})\b", re.IGNORECASE))
        for code, names in table()["gpus"].items()
    )


def capability(text: str) -> int:
    """Compute capability times 10 of the first known GPU that the text names, or 0."""
    found = [(match.start(), code) for code, match in _named(text)]
    return min(found)[1] if found else 0


def gpu_name(text: str) -> str:
    """The first known GPU that the text names; "" without one."""
    found = [(match.start(), match[0]) for _, match in _named(text)]
    return min(found)[1] if found else ""


def _named(text: str) -> list[tuple[int, re.Match[str]]]:
    found = ((code, names.search(text)) for code, names in _gpus())
    return [(code, match) for code, match in found if match]


def oldest(machine: str = "x86_64") -> int:
    """The smallest capability that the newest build has code for."""
    return min(table()["cuda"][list(table()["cuda"])[-1]][machine])


def newest_of_older(machine: str = "x86_64") -> int:
    """The largest capability that the last build for an older major version runs on.

    Code for 9.0 runs on 9.x only.
    """
    older = fields()["older_cuda"]
    return max(table()["cuda"][older][machine]) // 10 * 10 + 9


def for_gpu(code: int, machine: str = "x86_64") -> tuple[str, str]:
    """The build to install for a GPU, and its newest torch if this isn't the newest.

    `code` is the compute capability times 10. Without one (0), it is the build for
    recent GPUs.
    """
    wheel = fields()["wheel"]
    for cuda, machines in reversed(table()["cuda"].items()):
        codes = machines.get(machine, ())
        if any(code // 10 == other // 10 and code >= other for other in codes):
            last = table()["last"].get(cuda, "")
            return (index(cuda) if last else wheel), last
    return wheel, ""
