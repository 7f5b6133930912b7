"""Names and explanations of the mistakes, and the results of running one.

The texts are in mistakes.toml, which a teacher can edit; the code is in examples.
Nothing here imports torch, so that the web server can read all of it.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.measure.environment import Environment

# Where a half runs.
OTHER = "other"  # the accelerator, or the simulated one
TIMED = "timed"  # the accelerator or the CPU: a simulated one is no clock
HOST = "host"  # the CPU, also where there is an accelerator
NO_GPU = "no gpu"  # the CPU, with any GPU hidden from the process


@dataclass(frozen=True)
class Figure:
    """What a silent mistake gets wrong, and how the number is written."""

    label: str
    format: str  # for str.format, with the unit
    counts_waits: bool = False  # for numbers, else it is what the function returns
    curve: str = ""  # drawn for each step: its "loss", the "waits" until then,
    # the "share" of a batch that is right, the "memory"; empty: nothing


@dataclass(frozen=True)
class Mistake:
    """One mistake: `broken_<slug>` makes it, `fixed_<slug>` does not (core.halves)."""

    module: str  # in core.lessons.mistakes.examples
    slug: str
    title: str
    why: str
    symptom: str = ""  # what people see of a silent one, in their words
    broken_on: str = OTHER
    figure: Figure | None = None  # None: it is loud, and raises
    memory_bytes: int | None = None  # limit for its process
    linux_only: bool = False  # it forks processes, or limits them
    note: str = ""  # remark on the machine, for reading the outcome
    without_accelerator: str = ""  # the difference that an accelerator would make

    @property
    def loud(self) -> bool:
        return self.figure is None

    def address(self, half: str = "") -> str:
        """The address of the mistake's function, or of its "broken" or "fixed" half."""
        name = f"{half}_{self.slug}".removeprefix("_")
        return f"core.lessons.mistakes.examples.{self.module}:{name}"


def _mistakes() -> Iterator[Mistake]:
    for module, mistakes in _told.items():
        for slug, told in mistakes.items():
            figure = Figure(**told.pop("figure")) if "figure" in told else None
            yield Mistake(module, slug, figure=figure, **told)


_told = tomllib.loads(
    Path(__file__).parents[3].joinpath("mistakes.toml").read_text("utf-8")
)
MISTAKES = tuple(_mistakes())
BY_SLUG = {mistake.slug: mistake for mistake in MISTAKES}


@dataclass(frozen=True)
class Failure:
    """An exception, and where in the mistake's own function it was raised."""

    kind: str  # the exception's class
    message: str
    line: int | None  # in the function's body, from 1
    traceback: str
    poisoned: bool  # whether the device failed its process from then on


@dataclass(frozen=True)
class Outcome:
    """How one half ended: with a failure, a result, or the death of its process."""

    device: str  # "cuda", "sim", "cpu", ...
    result: str = ""  # the return value, as Python writes it
    figure: float | None = None
    curve: tuple[float, ...] = ()  # Figure.curve of a silent mistake, step by step
    failure: Failure | None = None
    died: str = ""  # how its process ended, in a sentence


@dataclass(frozen=True)
class MistakeRun:
    slug: str
    broken: Outcome
    fixed: tuple[Outcome, ...]  # one; earlier versions kept one for each device
    environment: Environment
