"""The map of which device is faster at which size: plain data, without torch."""

from dataclasses import dataclass

from core.lessons.compare.candidates import Pair
from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, paired
from core.registry import stored

WIDTHS = tuple(2**power for power in range(5, 13))  # 32 to 4096 hidden units
BATCH_SIZES = tuple(2**power for power in range(4, 13))  # 16 to 4096


@stored("map_cell")
@dataclass(frozen=True)
class Cell:
    width: int  # hidden units
    batch_size: int
    first: tuple[float, ...]  # seconds of a step, one for each repeat
    second: tuple[float, ...]  # the same for the second candidate

    @property
    def speedup(self) -> Speedup:
        """Speedup of the second candidate over the first."""
        return paired(self.first, self.second)


@stored("map")
@dataclass(frozen=True)
class Crossover:
    candidates: Pair
    environments: tuple[Environment, ...]  # one per candidate; empty while measuring
    cells: tuple[Cell, ...]
    planned: int  # cells of the whole map
    budget_seconds: float
    stopped: str  # why cells are missing, if memory ran out; else ""
    date: str

    def rows(self) -> list[Row]:
        """A row per cell and candidate, with the speedup of the cell."""
        return [
            row(
                "training step",
                seconds,
                self.environments[index],
                self.date,
                contender=self.candidates[index].name,
                **pick(cell, "width batch_size speedup_of_second=speedup.ratio"),
                speedup_least=cell.speedup.interval[0],
                speedup_most=cell.speedup.interval[1],
            )
            for cell in self.cells
            for index, seconds in enumerate((cell.first, cell.second))
        ]
