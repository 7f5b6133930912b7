"""The speed of a DataLoader with each setting: plain data, without torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from core.measure.environment import Environment, Machine
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, paired, unpaired
from core.registry import stored

BATCH_SIZES = (64, 256, 16, 1024)  # in the order of measuring, since time may run out
TEXTBOOK_BATCH = 64
FOR_A_GPU = 4  # workers per GPU, by the usual advice
MOST_WORKERS = 32  # the limit for all workers at once; each is a process
PINNING = ("CUDA", "ROCm", "XPU")  # backends that copy faster from pinned memory


@stored("loader_plan")
@dataclass(frozen=True)
class LoaderPlan:
    """The settings to measure, in all combinations."""

    batch_sizes: tuple[int, ...]
    workers: tuple[int, ...]
    pinned: tuple[bool, ...]

    @property
    def cells(self) -> int:
        return len(self.batch_sizes) * len(self.workers) * len(self.pinned)


def loader_plan(machine: Machine) -> LoaderPlan:
    """The settings to measure, chosen for this machine's cores and devices."""
    cores = machine.usable_cores
    counts = {0, 1, 2, FOR_A_GPU, per_core(cores), min(2 * cores, MOST_WORKERS)}
    can_pin = machine.devices[0].backend in PINNING
    pinned = (False, True) if can_pin else (False,)
    return LoaderPlan(BATCH_SIZES, tuple(sorted(counts)), pinned)


def per_core(cores: int) -> int:
    """The number of workers at one worker per core, but at most MOST_WORKERS."""
    return min(cores, MOST_WORKERS)


@stored("loader_cell")
@dataclass(frozen=True)
class LoaderCell:
    batch_size: int
    workers: int
    pinned: bool
    start_seconds: float  # time from iter(loader) to the first batch
    samples: int  # number of samples in each reading
    seconds: tuple[float, ...]  # one for each reading, without the start

    @property
    def samples_per_second(self) -> float:
        return self.samples / median(self.seconds)

    @property
    def spread(self) -> tuple[float, float]:
        """Least and most samples/s."""
        return self.samples / max(self.seconds), self.samples / min(self.seconds)

    def over(self, other: "LoaderCell", in_turn: bool = True) -> Speedup:
        """Speedup over another cell; `in_turn`: whether their readings alternated."""
        cells = other, self
        readings = ([s / cell.samples for s in cell.seconds] for cell in cells)
        return (paired if in_turn else unpaired)(*readings)


@stored("loader")
@dataclass(frozen=True)
class LoaderLab:
    plan: LoaderPlan
    cells: tuple[LoaderCell, ...]
    direct: tuple[LoaderCell, ...]  # the cells of `to_compare`, measured alternately
    failures: tuple[str, ...]  # a sentence for each cell that failed
    task: str
    cores: int
    budget_seconds: float
    environment: Environment
    date: str

    @property
    def shown(self) -> tuple[LoaderCell, ...]:
        """A cell for each setting: the one of `direct`, if there is one."""
        direct = at_textbook_batch(self.direct)
        alone = at_textbook_batch(self.cells)
        again = {alone[w]: cell for w, cell in direct.items() if w in alone}
        return tuple(again.get(cell, cell) for cell in self.cells)

    def over(self, cell: LoaderCell, other: LoaderCell) -> Speedup:
        """The speedup of one of the cells over another."""
        return cell.over(other, {cell, other} <= {*self.direct})

    def rows(self) -> list[Row]:
        columns = (
            "samples_per_second samples_a_reading=samples batch_size "
            "num_workers=workers pin_memory=pinned start_seconds"
        )
        about = pick(self, "environment date task usable_cores=cores")
        work = "loading and moving"
        return [
            row(name, cell.seconds, **pick(cell, columns), **about)
            for name, cells in ((work, self.cells), (f"{work}, in turn", self.direct))
            for cell in cells
        ]


def fastest(cells: Iterable[LoaderCell]) -> LoaderCell:
    return max(cells, key=lambda cell: cell.samples_per_second)


def at_textbook_batch(cells: Iterable[LoaderCell]) -> dict[int, LoaderCell]:
    """Cells with the textbook's batch size, without pinning, by number of workers."""
    row = (c for c in cells if c.batch_size == TEXTBOOK_BATCH and not c.pinned)
    return {cell.workers: cell for cell in row}


def to_compare(cells: Iterable[LoaderCell]) -> list[LoaderCell]:
    """The fastest textbook-batch cells, with at most MOST_WORKERS workers in all."""
    row, chosen = at_textbook_batch(cells).values(), list[LoaderCell]()
    for cell in sorted(row, key=lambda cell: -cell.samples_per_second):
        if sum(other.workers for other in chosen) + cell.workers <= MOST_WORKERS:
            chosen.append(cell)
    return chosen


def pinning(cells: Sequence[LoaderCell]) -> list[float]:
    """Pinned memory's speedup for each batch size and number of workers."""
    rates = {((c.batch_size, c.workers), c.pinned): c.samples_per_second for c in cells}
    return [
        rate / rates[setting, False]
        for (setting, pinned), rate in rates.items()
        if pinned and (setting, False) in rates
    ]
