"""PyTorch's builds for NVIDIA GPUs, from the dated table in builds.toml.

Where torch is installed and carries such a table itself, `diagnose` reads torch's.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

# A version of Python 3, as in lib/python3.8, Python38, cp38, or "Python 3.8.10".
PYTHON = re.compile(
    r"(?i)\b(?:python(?: version)?[ =:]{0,3}3\.(\d{1,2})|(?:python|cp)3(\d{1,2}))\b"
)
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
        (cuda, _architectures(codes[machine]))
        for cuda, codes in table()["cuda"].items()
        if machine in codes
    )


def _architectures(codes: Sequence[int]) -> tuple[str, ...]:
    """The architectures of compute capabilities times 10: "sm_90" for 90."""
    return tuple(f"sm_{code}" for code in codes)


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


def cuda_of(driver: str) -> str:
    """The major version of CUDA that a driver runs: "13" for "580.95.05".

    "" without a version; "10", or older, for a driver before that of CUDA 11.
    """
    if not (number := version(driver)[:1]):
        return ""
    first = {int(least): major for major, least in table()["drivers"].items()}
    return next((first[at] for at in sorted(first)[::-1] if number[0] >= at), "10")


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


def python(text: str) -> str:
    """The first version of Python 3 that the text names, as "3.8"; "" without one."""
    found = PYTHON.search(text)
    return f"3.{found[1] or found[2]}" if found else ""


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


def for_gpu(
    code: int,
    machine: str = "x86_64",
    driver: tuple[int, ...] = (),
    python: str = "",
) -> tuple[str, str]:
    """The build to install for a GPU, and its newest torch if this isn't the newest.

    `code` is the compute capability times 10. Without one (0), it is the build for
    recent GPUs. `driver` is the newest CUDA that the driver knows: it runs each build
    for the same major version, or an older one. `python` is a version such as "3.8".
    If no build for it runs on the GPU, the build is one for a newer Python.
    """
    wheel = fields()["wheel"]
    for cuda, architectures, last in _candidates(machine, python):
        if driver and version(cuda)[0] > driver[0]:
            continue
        if not code or runs_on(architectures, f"sm_{code}", version(cuda)):
            return (index(cuda) if last else wheel), last
    if driver and driver[0] == int(fields()["ended_cuda_major"]):
        return fields()["ended_wheel"], fields()["ended_torch"]
    return wheel, ""


def _candidates(
    machine: str, python: str
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """CUDA version, architectures, and last torch of each build, the best one first.

    Those for an old version of Python come first. The last torch is "" for builds of
    the newest one.
    """
    if old := table()["python"].get(python):
        for cuda, codes in reversed(old["cuda"].items()):
            yield cuda, _architectures(codes), old["torch"]
    for cuda, architectures in reversed(releases(machine)):
        yield cuda, architectures, table()["last"].get(cuda, "")


def runs_on(
    built: tuple[str, ...], architecture: str, cuda: tuple[int, ...] = ()
) -> bool:
    """Whether a GPU of `architecture` runs code for any of those in `built`.

    `cuda` is the build's version of CUDA. An "sm_89" GPU runs "sm_86" code:
    machine code runs on devices of the same major version and at least the same
    minor version. Code for a virtual architecture ("compute_90") runs on all later
    devices. Source: NVIDIA's CUDA programming guide, "Application compatibility".
    Jetsons are an exception, as in torch.cuda's DEVICE_REQUIREMENT. AMD's GPUs run
    only code for their own architecture.
    """
    kind, number = kind_and_number(architecture)
    if kind != "sm":
        return architecture in built
    return any(
        number >= code
        if other == "compute"
        else other == "sm" and _runs(code, number, cuda)
        for other, code in map(kind_and_number, built)
    )


# The GPUs of Jetsons (TX1, TX2, Xavier, Orin, Thor). Code for one of them runs on no
# other GPU. 101 was the first number of 110.
JETSON = (53, 62, 72, 87, 101, 110)


def _runs(code: int, gpu: int, cuda: tuple[int, ...]) -> bool:
    """Whether a GPU of compute capability `gpu` / 10 runs code for `code` / 10."""
    if code in JETSON:
        return gpu == code or {gpu, code} == {101, 110}
    # Since CUDA 13.2, Xavier and Orin run the code of other GPUs of their generation.
    if gpu in JETSON and not (gpu in (72, 87) and cuda >= (13, 2)):
        return False
    return gpu // 10 == code // 10 and gpu >= code


def kind_and_number(architecture: str) -> tuple[str, int]:
    """("sm", 90) for "sm_90a"; ("gfx1100", 0) for a name without "_" and a number."""
    kind, _, number = architecture.partition("_")
    digits = number.rstrip("af")
    return (kind, int(digits)) if digits.isdecimal() else (architecture, 0)


def version(text: str) -> tuple[int, ...]:
    """(2, 15, 0) for "2.15.0+cu132". Ends before the first part that is no number."""
    parts = text.partition("+")[0].split(".")
    return tuple(map(int, takewhile(str.isdecimal, parts)))
