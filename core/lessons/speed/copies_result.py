"""The results of timing small copies: plain data, without torch."""

from dataclasses import dataclass

from core.measure.environment import Environment
from core.measure.rows import Row, counted, pick, row
from core.registry import stored

ITEM, CPU, ONCE = ".item() in the loop", ".cpu() in the loop", "collected, fetched once"


@dataclass(frozen=True)
class Copied:
    pieces: int
    bytes: int  # total size of all pieces
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class Fetched:
    way: str  # ITEM, CPU or ONCE
    steps: int
    seconds: tuple[float, ...]  # one for each repeat


@dataclass(frozen=True)
class Waited:
    """The host's waits for the simulated accelerator, with one way to copy."""

    way: str
    waits: int
    times: int  # number of copies or steps in which the host could wait


@stored("copies")
@dataclass(frozen=True)
class CopiesLab:
    copied: tuple[Copied, ...]
    fetched: tuple[Fetched, ...]
    environment: Environment
    date: str
    waited: tuple[Waited, ...] = ()  # empty without the simulated accelerator

    def rows(self) -> list[Row]:
        about: Row = dict.fromkeys(("way", "pieces", "bytes", "steps"))
        about |= pick(self, "environment date")
        return [
            *(
                row("copies", copies.seconds, **about | pick(copies, "pieces bytes"))
                for copies in self.copied
            ),
            *(
                row("steps, fetched", steps.seconds, **about | pick(steps, "way steps"))
                for steps in self.fetched
            ),
            *(
                counted("waits of the host", **about | pick(waits, "way waits times"))
                for waits in self.waited
            ),
        ]
