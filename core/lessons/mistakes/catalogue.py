"""Names and explanations of the mistakes, and the results of running a mistake.

The texts are in content/, where a teacher can edit them; the code is in examples.
Nothing here imports torch, so that the web server can read all of it.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from core.folders import CONTENT
from core.measure.environment import Environment
from core.registry import stored

# The device on which a mistake's two halves run: the broken version and the fixed one.
OTHER = "other"  # the accelerator, or else the simulated accelerator
TIMED = "timed"  # the accelerator, or else the CPU: real times are compared
HOST = "host"  # the CPU, even if there is an accelerator
NO_GPU = "no gpu"  # the CPU, with any GPU hidden from the process
# The parts of the page's list, and what the page calls them
GROUPS = {"devices": "Devices", "training": "Training", "data": "Data"}


@dataclass(frozen=True)
class Figure:
    """The number that shows what a silent mistake gets wrong."""

    label: str
    format: str  # a template for str.format, with the unit
    # If True, the number is how often the host waits for a value from the device. If
    # False, the half returns the number.
    counts_waits: bool = False
    # What a curve shows, step by step: the "loss", the "waits" so far, the "share" of
    # the batch that is right, or the "memory"; "" for no curve.
    curve: str = ""


@dataclass(frozen=True)
class Mistake:
    """A mistake and its halves: broken_<slug> makes it, and fixed_<slug> avoids it.

    core.halves makes these two functions from the lines of one function.
    """

    module: str  # the module's name in core.lessons.mistakes.examples
    slug: str
    group: str  # a key of GROUPS
    title: str
    why: str
    symptom: str = ""  # what people notice of a silent mistake, in their words
    broken_on: str = OTHER  # the device of both halves: OTHER, TIMED, HOST or NO_GPU
    figure: Figure | None = None  # None if the mistake is loud: it raises an exception
    memory_bytes: int | None = None  # memory limit of the CPU process, or of the device
    linux_only: bool = False  # True if the mistake forks or limits processes
    note: str = ""  # how the app runs the mistake, if that helps to read the outcome
    without_accelerator: str = ""  # what would differ on an accelerator

    @property
    def loud(self) -> bool:
        return self.figure is None

    def address(self, half: str = "") -> str:
        """The address of the mistake's function, or of its "broken" or "fixed" half."""
        name = f"{half}_{self.slug}".removeprefix("_")
        return f"core.lessons.mistakes.examples.{self.module}:{name}"


def _mistakes() -> Iterator[Mistake]:
    modules = tomllib.loads(CONTENT.joinpath("mistakes.toml").read_text("utf-8"))
    for module, mistakes in modules.items():
        for slug, fields in mistakes.items():
            figure = Figure(**fields.pop("figure")) if "figure" in fields else None
            yield Mistake(module, slug, figure=figure, **fields)


MISTAKES = tuple(_mistakes())
BY_SLUG = {mistake.slug: mistake for mistake in MISTAKES}


@stored("failure")
@dataclass(frozen=True)
class Failure:
    """An exception, and where in the mistake's own function it was raised."""

    kind: str  # the name of the exception's class
    message: str
    line: int | None  # line of the function's body, from 1
    traceback: str
    poisoned: bool  # whether the process can't use the device anymore


@dataclass(frozen=True)
class Outcome:
    """How one half ended: with a failure, a result, or the death of its process."""

    device: str  # "cuda", "sim", "cpu", ...
    result: str = ""  # the repr of the return value
    figure: float | None = None  # the number of a silent mistake
    curve: tuple[float, ...] = ()  # the values of Figure.curve, step by step
    failure: Failure | None = None
    died: str = ""  # a sentence on how the process died; "" if it did not


@stored("mistake")
@dataclass(frozen=True)
class MistakeRun:
    slug: str
    broken: Outcome
    fixed: tuple[Outcome, ...]  # one Outcome; old records have one for each device
    environment: Environment
