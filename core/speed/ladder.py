"""The rungs of the ladder and what a climb found on each: plain data, without torch.

The code of the rungs is in core.speed.rungs, core.speed.climb measures them, and
core.speed.roofline the machine's limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from statistics import median
from typing import Any, ClassVar

from core.config import IMAGE_MODELS, IMAGE_TASKS
from core.measure.speedup import Speedup


@dataclass(frozen=True)
class Rung:
    """One small change to the loop of the rung before."""

    name: str  # of its function in core.speed.rungs
    title: str
    change: str  # what it changes and why that may help
    obstacles: dict[str, str] = field(default_factory=dict)  # backend or model: why not

    def obstacle(self, backend: str, model: str) -> str:
        """Why it says nothing or can't be there, in a sentence; empty where it does."""
        return self.obstacles.get(backend) or self.obstacles.get(model, "")


RUNGS = (
    Rung(
        "textbook",
        "The textbook loop",
        "A `DataLoader` opens every image with PIL and turns it into a float tensor, "
        "64 to a batch. After each step, `.item()` fetches the loss.",
    ),
    Rung(
        "two_workers",
        "Two loader workers",
        "`num_workers=2`: two processes make the batches while the model trains. They "
        "help if each has a core of its own, but every batch has to be handed from "
        "process to process.",
    ),
    Rung(
        "four_workers",
        "Four loader workers",
        "`num_workers=4`, which is often recommended. Is there a core for each, and "
        "one left for training?",
    ),
    Rung(
        "pinned",
        "Pinned memory",
        "`pin_memory=True` and `non_blocking=True`: batches wait in page-locked "
        "memory, and their copy to the device runs while the CPU goes on.",
        {
            "CPU": "Pinned memory speeds up copies to an accelerator, and there is "
            "none here: the batches already are where they're needed.",
            "MPS": "On Apple's chips the GPU shares the CPU's memory, so there's "
            "nothing to gain from pinning.",
        },
    ),
    Rung(
        "decoded_once",
        "Decode once",
        "The images are decoded once and stay in memory as one uint8 tensor. A batch "
        "is picked out of it by index, and the model scales it to floats.",
    ),
    Rung(
        "on_the_device",
        "Data on the device",
        "47 MB of pixels fit on any device: they move there once, and no batch has to "
        "be copied again.",
        {
            "CPU": "On a CPU the data lives on the device already: the host is the "
            "device."
        },
    ),
    Rung(
        "no_waiting",
        "No .item() in the loop",
        "`.item()` makes the CPU wait until the device has finished the step. Here the "
        "loss stays where it is, and many are fetched at once when you want to see "
        "them.",
    ),
    Rung(
        "fused",
        "Fused optimizer",
        "`Adam(fused=True)` does the whole update in one kernel for many parameters "
        "at once. Without it each operation of the update is a kernel of its own: on a "
        "CPU for each parameter, on an NVIDIA GPU for groups of them.",
    ),
    Rung(
        "larger_batch",
        "Larger batch",
        "256 images to a step instead of 64: a quarter of the steps, and each keeps "
        "the device busier. With fewer steps, each has to go further: for Adam, four "
        "times the batch size goes with about twice the learning rate.",
    ),
    Rung(
        "half_precision",
        "16-bit autocast",
        "**Mixed precision**, AMP for short: within `torch.autocast` matrix "
        "multiplications run in bfloat16, with half the bytes and on faster units "
        "where the device has them; the weights stay float32. Where there is only "
        "float16, a `GradScaler` keeps small gradients from vanishing. The Evaluate "
        "page shows what it does to the answers, under “The cost”.",
    ),
    Rung(
        "channels_last",
        "Channels last",
        "The channels of a pixel lie side by side in memory, as convolution kernels "
        "like it.",
        {"ann": "The ANN has no convolutions; choose the CNN to measure it."},
    ),
    Rung(
        "compiled",
        "torch.compile",
        "`torch.compile` writes kernels for just this model, which merge operations "
        "that would each go through memory. Building them takes a while, once. Every "
        "batch now has the same shape; otherwise it would build a second set.",
    ),
    Rung(
        "whole_step",
        "The whole step, compiled",
        "Picking the batch, forward pass, backward pass and optimizer become one "
        "compiled function: a single call from Python. For that the loop is written "
        "with functions: `grad_and_value` in place of `backward`, `adam` in place of "
        "`Adam`.",
        {
            "cnn": "The CNN's batch norm changes its running averages during the "
            "forward pass. With `torch.func` they would have to be passed in and "
            "returned, which this loop does not do. Choose the ANN."
        },
    ),
    Rung(
        "graphed",
        "One CUDA graph",
        "The whole step, from forward pass to optimizer, is recorded once and then "
        "started by a single call: Python and the launching of kernels then cost "
        "almost nothing.",
        dict.fromkeys(
            ("CPU", "XPU", "MPS"),
            "CUDA graphs record what is sent to an NVIDIA or AMD GPU, and this "
            "device is neither.",
        ),
    ),
)
BY_NAME = {rung.name: rung for rung in RUNGS}
# Epochs on each rung and images in one, so that a CPU with two cores is done in time.
DEFAULTS = {"ann": (3, 60_000), "cnn": (2, 10_000)}
RANGES = {"epochs": (1, 10), "images": (1_024, 60_000)}
FIRST_STEPS = 5  # before the epochs that are timed


@dataclass(frozen=True)
class Climb:
    """What to climb with. ValueError has a sentence for each value that can't be."""

    task: str
    model: str
    device: str  # as core.devices.resolve takes it
    epochs: int  # on each rung
    images: int  # in an epoch, the first of the training set

    def __post_init__(self) -> None:
        if self.task not in IMAGE_TASKS or self.model not in IMAGE_MODELS:
            raise ValueError("The ladder is climbed with images.")
        told = [
            f"{name.capitalize()} must be from {low:,} to {high:,}, not {value:,}."
            for name, (low, high) in RANGES.items()
            if not low <= (value := getattr(self, name)) <= high
        ]
        if told:
            raise ValueError(" ".join(told))


@dataclass(frozen=True)
class Progress:
    """How far a rung has come."""

    passes: ClassVar[bool] = True  # of interest until the next one
    rung: str
    epoch: int  # from 1; 0 while it is set up
    step: int  # of the epoch


@dataclass(frozen=True)
class Result:
    """What was measured on one rung, or why nothing was."""

    rung: str
    base: str  # the rung that it changes: the last one that was kept
    seconds: tuple[float, ...] = ()  # of each epoch; none where nothing was measured
    base_seconds: tuple[float, ...] = ()  # of an epoch of the base after each of them
    samples: int = 0  # in an epoch
    steps: int = 0  # in an epoch
    start_seconds: float = 0.0  # set-up and first step: worker processes, compiling
    peak_bytes: int | None = None  # of some steps; None: nothing counts it
    correct: int = 0  # of the test images, after all epochs
    total: int = 0
    kept: bool = False  # whether the rungs above build on it
    applies: bool = True
    message: str = ""  # why it does not apply, or why it failed

    @property
    def measured(self) -> bool:
        return bool(self.seconds)

    @property
    def epoch_seconds(self) -> float:
        return median(self.seconds)

    @property
    def samples_per_second(self) -> float:
        return self.samples / self.epoch_seconds

    @property
    def accuracy(self) -> float:
        return self.correct / self.total


@dataclass(frozen=True)
class Kept:
    """What the rungs above build on: the changes that brought something here."""

    num_workers: int = 0
    batch_size: int = 64
    learning_rate: float = 1e-3
    half: bool = False  # 16-bit autocast
    channels_last: bool = False
    compiled: bool = False


CHANGES: dict[str, dict[str, Any]] = {  # what keeping a rung means
    "two_workers": {"num_workers": 2},
    "four_workers": {"num_workers": 4},
    "larger_batch": {"batch_size": 256, "learning_rate": 2e-3},
    "half_precision": {"half": True},
    "channels_last": {"channels_last": True},
    "compiled": {"compiled": True},
}

NEEDED = ("textbook", "decoded_once", "on_the_device", "no_waiting", "fused")


def with_change(given: Kept, rung: str) -> Kept:
    """What is kept once that rung is."""
    return replace(given, **CHANGES.get(rung, {}))


def kept(results: Sequence[Result]) -> Kept:
    """Of rungs climbed so far, what those above build on."""
    return reduce(with_change, (r.rung for r in results if r.kept), Kept())


def base(results: Sequence[Result]) -> str:
    """The rung that the next one changes; the first has nothing before it."""
    return next((r.rung for r in reversed(results) if r.kept), "")


# How much faster, and is it?

SAME = 0.1  # rungs that differ by less are called about the same
# Test accuracies on Fashion-MNIST after the textbook loop with the seeds 0 to 9, on a
# CPU with torch 2.15: the ANN after 3 epochs of all images, the CNN after 2 of 10,000.
SEEDS = {
    "ann": (
        *(0.8606, 0.8613, 0.8681, 0.8602, 0.8653),
        *(0.8655, 0.8704, 0.8584, 0.8656, 0.8635),
    ),
    "cnn": (
        *(0.8184, 0.8508, 0.8546, 0.8410, 0.8490),
        *(0.8462, 0.8514, 0.8521, 0.8208, 0.8540),
    ),
}
# What accuracies may differ by without saying anything: so far apart are two of the
# ten, where they are farthest, rounded up to a point.
NOISE = 0.04


@dataclass(frozen=True)
class Gain(Speedup):
    """How many times as fast a rung is as its base, by pairs of epochs."""

    @property
    def same(self) -> bool:
        """Whether there is too little between them to speak of."""
        return abs(self.median - 1) <= SAME

    @property
    def disputed(self) -> bool:
        """Whether one pair has it faster and another slower."""
        least, most = self.interval
        return least < 1 < most


DRIFT = 0.25  # with more, epochs of different moments can't be compared


def drift(result: Result, base: Result | None) -> float | None:
    """How many times as fast the machine was as when the base was measured.

    By the base's epochs, then and now. None where it changed too little to matter.
    """
    if base is None or not result.base_seconds:
        return None
    pace = base.epoch_seconds / median(result.base_seconds)
    return None if 1 / (1 + DRIFT) <= pace <= 1 + DRIFT else pace


def measured(results: Sequence[Result]) -> dict[str, Result]:
    """Those that have figures, by their rungs."""
    return {each.rung: each for each in results if each.measured}


def gain(result: Result, base: Result | None) -> Gain | None:
    """Over its base, by epochs timed in turn; None where there were none.

    Of samples/s, since a rung may leave out the last, smaller batch.
    """
    if base is None:
        return None
    pairs = zip(result.base_seconds, result.seconds, strict=False)
    ratios = tuple(a / b * result.samples / base.samples for a, b in pairs)
    return Gain(ratios) if ratios else None


def is_kept(result: Result, before: Sequence[Result]) -> bool:
    """Whether the rungs above build on it: it is faster and has learned as much.

    Some are kept in any case: those above can't do without them.
    """
    earlier = measured(before)
    if result.rung in NEEDED or result.base not in earlier:
        return True
    first, found = next(iter(earlier.values())), gain(result, earlier[result.base])
    as_good = result.accuracy > first.accuracy - NOISE
    return as_good and found is not None and found.median > 1 + SAME


GUESSES = ("Slower", "About the same", "Up to 2 times as fast", "More than that")


def answer(found: Gain) -> str:
    """Which of GUESSES is right."""
    if found.same:
        return GUESSES[1]
    if found.median < 1:
        return GUESSES[0]
    return GUESSES[2] if found.median <= 2 else GUESSES[3]


def pays_after(result: Result, base: Result) -> float | None:
    """Epochs after which the time to start is won back; None if it never is."""
    found = gain(result, base)
    if found is None or found.median <= 1:
        return None
    won = result.epoch_seconds * (found.median - 1)
    return (result.start_seconds - base.start_seconds) / won
