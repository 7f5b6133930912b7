"""What is told of the files of Fashion-MNIST: plain data, without torch."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Download:
    """How far a download has come."""

    passes: ClassVar[bool] = True  # of interest until the next one
    done_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class DatasetStatus:
    """Whether Fashion-MNIST is here."""

    source: str | None = None  # the folder it is in; None: it is not here yet
    problem: str | None = None  # what is wrong with it; None: it is whole
    named: bool = False  # whether somebody named that folder in FASHION_MNIST_DIR

    @property
    def usable(self) -> bool:
        return self.source is not None and self.problem is None
