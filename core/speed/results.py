"""The labs of the Speed page, and what they say: plain data, without torch.

They are measured in core.speed.loader, core.speed.memory, core.speed.vectorize and
core.speed.copies.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from core.measure.environment import Environment, Machine
from core.measure.rows import Row, pick, row
from core.measure.speedup import paired

# The loader lab

BATCH_SIZES = (64, 256, 16, 1024)  # the textbook's first: the time may be over early
TEXTBOOK_BATCH = 64
FOR_A_GPU = 4  # workers, as the usual advice has it
MOST_WORKERS = 32  # each is a process
PINNING = ("CUDA", "ROCm", "XPU")  # backends that copy faster from pinned memory


@dataclass(frozen=True)
class LoaderPlan:
    """The settings to be measured: all combinations."""

    batch_sizes: tuple[int, ...]
    workers: tuple[int, ...]
    pinned: tuple[bool, ...]

    @property
    def cells(self) -> int:
        return len(self.batch_sizes) * len(self.workers) * len(self.pinned)


def loader_plan(machine: Machine) -> LoaderPlan:
    """What to measure on a machine that core.devices.describe has described.

    More workers than cores are among it on purpose.
    """
    cores = machine.usable_cores
    counts = {0, 1, 2, FOR_A_GPU, per_core(cores), min(2 * cores, MOST_WORKERS)}
    can_pin = machine.devices[0].backend in PINNING
    pinned = (False, True) if can_pin else (False,)
    return LoaderPlan(BATCH_SIZES, tuple(sorted(counts)), pinned)


def per_core(cores: int) -> int:
    """Workers, if there is to be one for each core."""
    return min(cores, MOST_WORKERS)


@dataclass(frozen=True)
class LoaderCell:
    """How fast a DataLoader with these settings hands out batches."""

    batch_size: int
    workers: int
    pinned: bool
    start_seconds: float  # from iter(loader) to the first batch
    samples: int  # in each reading
    seconds: tuple[float, ...]  # one for each reading; the start is not in it

    @property
    def samples_per_second(self) -> float:
        return self.samples / median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most samples/s."""
        return self.samples / max(self.seconds), self.samples / min(self.seconds)

    def share_of(self, other: "LoaderCell") -> float:
        """Of the other's samples/s, the median over readings that were in turn."""
        share = paired(other.seconds, self.seconds).median
        return share * self.samples / other.samples

    def as_fast_as(self, other: "LoaderCell") -> bool:
        """Whether the spreads of the two overlap, so that neither is known faster."""
        (low, high), (other_low, other_high) = self.spread, other.spread
        return low <= other_high and other_low <= high


@dataclass(frozen=True)
class LoaderLab:
    """The cells that were measured, and why others were not."""

    plan: LoaderPlan
    cells: tuple[LoaderCell, ...]
    # Those of to_compare again, read in turn; none where time or room was too short.
    direct: tuple[LoaderCell, ...]
    failures: tuple[str, ...]  # a sentence for each cell that could not be measured
    task: str
    cores: int
    budget_seconds: float
    environment: Environment
    date: str

    def rows(self) -> list[Row]:
        """A row a cell, with the start of its workers apart; last those in turn."""
        columns = (
            "samples_per_second samples_a_reading=samples batch_size "
            "num_workers=workers pin_memory=pinned start_seconds"
        )
        about = pick(self, "environment date task usable_cores=cores")
        what = "loading and moving"
        return [
            row(name, each.seconds, **pick(each, columns), **about)
            for name, cells in ((what, self.cells), (f"{what}, in turn", self.direct))
            for each in cells
        ]


def fastest(cells: Iterable[LoaderCell]) -> LoaderCell:
    return max(cells, key=lambda cell: cell.samples_per_second)


def at_textbook_batch(cells: Iterable[LoaderCell]) -> dict[int, LoaderCell]:
    """Those with the textbook's batch size, without pinned memory, by workers."""
    row = (c for c in cells if c.batch_size == TEXTBOOK_BATCH and not c.pinned)
    return {cell.workers: cell for cell in row}


def to_compare(cells: Iterable[LoaderCell]) -> list[LoaderCell]:
    """With the textbook's batch size, the fastest first; no more than fit together."""
    row, chosen = at_textbook_batch(cells).values(), list[LoaderCell]()
    for cell in sorted(row, key=lambda cell: -cell.samples_per_second):
        if sum(each.workers for each in chosen) + cell.workers <= MOST_WORKERS:
            chosen.append(cell)
    return chosen


def pinning(cells: Sequence[LoaderCell]) -> list[float]:
    """Pinned samples/s over those of the same cell without, for each pair.

    The two of a pair were measured one after the other, and pair after pair.
    """
    rates = {((c.batch_size, c.workers), c.pinned): c.samples_per_second for c in cells}
    return [
        rate / rates[setting, False]
        for (setting, pinned), rate in rates.items()
        if pinned and (setting, False) in rates
    ]


# The memory lab

STEP, CHECKPOINTED, ACCUMULATED = "one batch", "checkpointed", "accumulated"


@dataclass(frozen=True)
class Peak:
    """One way has been tried, and its memory is known; its time comes later."""

    name: str
    bytes: int | None


@dataclass(frozen=True)
class MemoryCost:
    """What one way to train or to infer costs."""

    kind: str  # "training" or "inference"
    name: str
    seconds: tuple[float, ...]  # one for each repeat
    peak_bytes: int | None  # None where the device does not tell
    difference: float  # greatest, of gradients or outputs, from the first of its kind
    greatest: float  # gradient or output, to read the difference with


@dataclass(frozen=True)
class MemoryLab:
    """All ways on one model and batch."""

    costs: tuple[MemoryCost, ...]
    batch_size: int
    parts: int  # the batch is accumulated in so many
    width: int
    layers: int
    environment: Environment
    date: str

    def rows(self) -> list[Row]:
        """A row a way to train or to infer."""
        columns = (
            "way=name peak_bytes greatest_difference=difference greatest_value=greatest"
        )
        about = pick(self, "environment date batch_size width layers")
        return [
            row(each.kind, each.seconds, **pick(each, columns), **about)
            for each in self.costs
        ]


# Vectorize

PYTHON, NUMPY, TORCH = "Python loop", "NumPy", "torch on CPU"


@dataclass(frozen=True)
class Vectorized:
    """The same distances, computed in one way, of so many points."""

    way: str
    points: int
    seconds: tuple[float, ...]  # one for each repeat
    difference: float  # greatest, from what the Python loop found
    device: str


@dataclass(frozen=True)
class NumpyEnvironment(Environment):
    """Of what NumPy computes."""

    numpy: str  # version


@dataclass(frozen=True)
class VectorizeLab:
    """All ways at all sizes."""

    found: tuple[Vectorized, ...]
    means: int
    environments: dict[str, Environment]  # of each way
    date: str

    @property
    def numpy(self) -> str:
        """NumPy's version."""
        environment = self.environments[NUMPY]
        assert isinstance(environment, NumpyEnvironment)
        return environment.numpy

    def at(self, points: int) -> dict[str, float]:
        """Median seconds of each way."""
        return {e.way: median(e.seconds) for e in self.found if e.points == points}

    def times_as_fast(self, points: int, way: str, other: str) -> float:
        """How many times as fast one way is as the other: the median over repeats."""
        found = {e.way: e.seconds for e in self.found if e.points == points}
        return paired(found[other], found[way]).median

    def rows(self) -> list[Row]:
        """A row a way and number of points."""
        return [
            row(
                "distances",
                each.seconds,
                self.environments[each.way],
                **pick(each, "way points"),
                **pick(self, "means date"),
                greatest_difference=each.difference,
            )
            for each in self.found
        ]


# Small copies

ITEM, CPU, ONCE = ".item() in the loop", ".cpu() in the loop", "collected, fetched once"


@dataclass(frozen=True)
class Copied:
    """The same bytes, copied in so many pieces."""

    pieces: int
    bytes: int  # in all
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class Fetched:
    """A number from each of many steps, brought to the host."""

    way: str  # ITEM, CPU or ONCE
    steps: int
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class CopiesLab:
    """Both halves: to the device in pieces, and back from it."""

    copied: tuple[Copied, ...]
    fetched: tuple[Fetched, ...]
    environment: Environment
    date: str

    def rows(self) -> list[Row]:
        """A row a number of pieces, then a row a way to fetch."""
        where = pick(self, "environment date")
        copies = [
            row(
                "copies",
                e.seconds,
                way=None,
                **pick(e, "pieces bytes"),
                steps=None,
                **where,
            )
            for e in self.copied
        ]
        fetches = [
            row(
                "steps, fetched",
                e.seconds,
                way=e.way,
                pieces=None,
                bytes=None,
                steps=e.steps,
                **where,
            )
            for e in self.fetched
        ]
        return copies + fetches


# The ladder's limit


@dataclass(frozen=True)
class Roofline:
    """How fast the machine could train at best, from what was measured on it.

    Of several readings the fastest counts: something else may have slowed the others.
    """

    flops_per_image: float  # of a forward and a backward pass
    bytes_per_image: float  # pixels and label, read once
    bytes_per_step: float  # weights, gradients and Adam's moments, read and written
    flops_per_second: dict[str, tuple[float, ...]]  # dtype: each reading
    bytes_per_second: tuple[float, ...]  # each reading, read and written
    state_bytes_per_second: tuple[float, ...]  # in a block as large as the state

    def arithmetic_seconds(self, images: int, dtype: str = "float32") -> float:
        """Of so many images: their arithmetic at the rate of a large product."""
        return images * self.flops_per_image / max(self.flops_per_second[dtype])

    def memory_seconds(self, images: int, steps: int) -> float:
        """Of so many images in so many steps: their bytes at the measured bandwidth."""
        pixels = images * self.bytes_per_image / max(self.bytes_per_second)
        state = steps * self.bytes_per_step / max(self.state_bytes_per_second)
        return pixels + state

    def seconds(self, images: int, steps: int, dtype: str = "float32") -> float:
        """The longer of the two, as in the roofline model, where they overlap fully.

        Williams, Waterman and Patterson, "Roofline", CACM 52 (4), 2009.
        """
        arithmetic = self.arithmetic_seconds(images, dtype)
        return max(arithmetic, self.memory_seconds(images, steps))
