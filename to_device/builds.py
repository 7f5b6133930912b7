"""PyTorch's builds for NVIDIA GPUs, from the dated table in builds.toml.

Where torch is installed and carries such a table itself, `diagnose` reads torch's.
"""

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
