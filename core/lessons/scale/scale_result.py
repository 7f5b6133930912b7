"""The results of training on several ranks: plain data, without torch."""

from dataclasses import dataclass
from statistics import median

from core.measure import rows
from core.measure.environment import Environment
from core.measure.speedup import Speedup, paired

SIZES = (1, 2, 4)  # the numbers of ranks that are compared


@dataclass(frozen=True)
class RankLoss:
    """A rank's mean loss since its last report."""

    rank: int
    step: int
    loss: float  # mean over its own images of these steps


@dataclass(frozen=True)
class RankEnd:
    rank: int
    losses: tuple[RankLoss, ...]
    images: int  # training images fed to it, in all epochs
    weights: str  # a hash of all of them
    seconds: float
    correct: int | None  # right answers on the test images; only rank 0 is asked


@dataclass(frozen=True)
class ParallelRun:
    ends: tuple[RankEnd, ...]  # by rank
    train_images: int
    test_images: int
    backend: str  # exchanges the gradients: "gloo", "nccl"
    environment: Environment
    date: str

    @property
    def agree(self) -> bool:
        """Whether all ranks hold the same weights, bit for bit."""
        return len({each.weights for each in self.ends}) == 1


@dataclass(frozen=True)
class Share:
    """One rank's gradients of a batch, its own and averaged."""

    own: tuple[float, ...]  # gradients of the last layer's bias (classes,), of its part
    averaged: tuple[float, ...]  # the same over the ranks
    alone: tuple[float, ...]  # the same from the whole batch
    greatest: float  # largest absolute gradient of the whole model
    difference: float  # greatest, between averaged and alone, over all of them
    by_ddp: float  # greatest, between averaged by hand and by DDP
    all: str  # a hash of all averaged gradients


@dataclass(frozen=True)
class Gradients:
    """The gradients of one batch, computed in parts and at once."""

    classes: tuple[str, ...]
    shares: tuple[Share, ...]  # by rank
    images: int  # per rank
    backend: str
    environment: Environment
    date: str

    @property
    def agree(self) -> bool:
        """Whether all ranks have the same average, bit for bit."""
        return len({each.all for each in self.shares}) == 1


@dataclass(frozen=True)
class Repeat:
    done: int
    of: int


@dataclass(frozen=True)
class Step:
    ranks: int
    threads: int  # per rank
    seconds: tuple[float, ...]  # one step of the slowest rank, once for each repeat
    silent: tuple[float, ...] = ()  # the same without exchanging gradients

    @property
    def exchange(self) -> float:
        """Median seconds of the exchange, with waiting for the slowest rank; or 0."""
        pairs = zip(self.seconds, self.silent, strict=False)
        found = [with_it - without for with_it, without in pairs]
        return max(0.0, median(found)) if found else 0.0


@dataclass(frozen=True)
class Cost:
    model: str
    batch_size: int  # all ranks together
    steps: tuple[Step, ...]  # first that of one rank with one thread
    cores: int
    backend: str
    environment: Environment
    date: str

    def speedup(self, step: Step) -> Speedup:
        """Speedup over one rank with one thread."""
        return paired(self.steps[0].seconds, step.seconds)

    def rows(self) -> list[rows.Row]:
        return [
            rows.row(
                f"step on {each.ranks} ranks",
                each.seconds,
                self.environment,
                self.date,
                **rows.pick(each, "ranks threads_of_each=threads"),
                **rows.pick(self, "model batch_size backend"),
                exchange_seconds=each.exchange,
                speedup=self.speedup(each).ratio,
            )
            for each in self.steps
        ]


@dataclass(frozen=True)
class Orders:
    images: int  # in the dataset
    told: tuple[tuple[tuple[int, ...], ...], ...]  # by epoch, by rank; with set_epoch
    forgotten: tuple[tuple[tuple[int, ...], ...], ...]  # without
