"""What all steps share: parts done one by one, each kept as soon as it is known.

A step has its results in a file of its own. Whoever starts it again, with the same
folder, goes on where it was: with what was never begun, then with what failed.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from core import devices
from core.data import datasets
from core.errors import CancelledError
from core.measure.environment import now

PACKAGES = ("torch", "torchvision", "triton", "numpy", "distributed", "streamlit")
TRIED = ("begun", "failed")  # what may hang or fail again, and comes last
MOST_QUOTED = 500  # characters of a sentence


class SkipError(Exception):
    """There is nothing to be tried here, and why."""


class WrongError(Exception):
    """It came to its end, but not to the one that was wanted."""

    def __init__(self, said: str, found: Any = None) -> None:
        super().__init__(said)
        self.found = found


@dataclass(frozen=True)
class Setting:
    """Where a step runs, and how much of it."""

    device: torch.device
    folder: Path  # for the results
    tiny: bool  # as little as still runs every line
    deadline: float  # on the clock of time.monotonic()

    @property
    def task(self) -> str:
        """Fashion-MNIST, or sprites where it is not here."""
        there = not self.tiny and datasets.status().usable
        return "fashion-mnist" if there else "sprites"


@dataclass(frozen=True)
class Part:
    """A piece of a step that can fail without harm to the others."""

    name: str
    seconds: float  # it is not begun with where less is left
    work: Callable[[], Any]  # what it returns is kept
    last: bool = False  # it sums up the others: done after them, each time anew


class Results:
    """What a step has found so far, in a file that is whole at any moment."""

    def __init__(self, path: Path, device: torch.device, tiny: bool) -> None:
        self._path = path
        self.parts: dict[str, Any] = {}
        self.untried = ""  # what needs an accelerator, where there is none
        if path.exists():
            self.parts = json.loads(path.read_text("utf-8"))["parts"]
        self._about = {
            "environment": devices.environment(device),
            "memory": devices.memory(device),
            "packages": {name: _version(name) for name in PACKAGES},
            "tiny": tiny,
        }

    def keep(
        self,
        part: str,
        status: str,
        said: str = "",
        found: Any = None,
        seconds: float = 0.0,
    ) -> None:
        """Write down how a part stands: begun, done, failed or skipped, and why."""
        kept = dict(status=status, said=said, seconds=seconds, date=now(), found=found)
        parts = {**self.parts, part: kept}
        whole = json.dumps(
            {**self._about, "untried": self.untried, "parts": parts}, default=plain
        )
        self.parts = json.loads(whole)["parts"]
        aside = self._path.with_suffix(".new")
        aside.write_text(whole, "utf-8")
        aside.replace(self._path)

    def done(self, part: str) -> bool:
        return self.parts.get(part, {}).get("status") == "done"


def work_through(parts: Iterable[Part], setting: Setting, results: Results) -> None:
    """Do what is not done yet, for as long as there is time."""

    def turn(part: Part) -> tuple[bool, bool]:
        before = results.parts.get(part.name, {}).get("status")
        return part.last, before in TRIED

    for part in sorted(parts, key=turn):
        left = setting.deadline - time.monotonic()
        if results.done(part.name) and not part.last:
            continue
        if part.seconds > left and not setting.tiny:
            said = f"It may take {part.seconds:.0f} s, and {left:.0f} s were left."
            results.keep(part.name, "skipped", said)
            continue
        results.keep(part.name, "begun")
        began = time.monotonic()
        status, said, found = outcome(part.work)
        try:
            results.keep(part.name, status, said, found, time.monotonic() - began)
        except (TypeError, ValueError) as error:  # it found what JSON can't hold
            results.keep(part.name, "failed", sentence(error))
        status = results.parts[part.name]["status"]
        print(f"{part.name}: {status}. {said}", flush=True)


def outcome(work: Callable[[], Any]) -> tuple[str, str, Any]:
    """How it ended, in a word and a sentence, and what it found."""
    try:
        found = work()
    except (SkipError, devices.UntimedError) as why:
        return "skipped", str(why), None
    except ImportError as error:
        return "skipped", f"What it needs is not installed here: {error}.", None
    except WrongError as error:
        return "failed", sentence(error), error.found
    except (Exception, CancelledError) as error:
        traceback.print_exc(file=sys.stderr)  # which goes to the log
        return "failed", sentence(error), None
    return "done", "", found


def sentence(error: BaseException) -> str:
    """The first line of what an error says."""
    said = str(error).strip().partition("\n")[0][:MOST_QUOTED]
    if isinstance(error, AssertionError | WrongError) and said:
        return said
    return f"{type(error).__name__}: {said}"


def plain(value: Any) -> Any:
    """What JSON can hold of a result."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
