"""The results of training on several ranks: plain data, without torch."""

from dataclasses import dataclass
from statistics import median

from core.measure import rows
from core.measure.environment import Environment
from core.measure.speedup import Speedup, paired
from core.registry import stored

SIZES = (1, 2, 4)  # numbers of ranks to choose from and to compare


@stored("rank_loss")
@dataclass(frozen=True)
class RankLoss:
    rank: int
    step: int
    loss: float  # mean over the rank's own images since its last report


@dataclass(frozen=True)
class RankEnd:
    rank: int
    losses: tuple[RankLoss, ...]
    images: int  # training images that the rank has seen, over all epochs
    weights: str  # a hash of the rank's weights after training
    seconds: float  # training time
    correct: int | None  # right answers on the test images; None except for rank 0


@stored("data_parallel")
@dataclass(frozen=True)
class ParallelRun:
    ends: tuple[RankEnd, ...]  # by rank
    train_images: int
    test_images: int
    backend: str  # the library that exchanges the gradients: "gloo", "nccl"
    environment: Environment
    date: str

    @property
    def agree(self) -> bool:
        """Whether all ranks hold the same weights, bit for bit."""
        return len({end.weights for end in self.ends}) == 1


@dataclass(frozen=True)
class Share:
    """The gradients that one rank got in three ways."""

    own: tuple[float, ...]  # gradients of the last layer's bias, from the rank's share
    averaged: tuple[float, ...]  # the same gradients, averaged over the ranks
    alone: tuple[float, ...]  # the same gradients, from the whole batch at once
    greatest: float  # largest absolute gradient of the whole model
    # Largest difference between averaged and whole-batch gradients, in the whole model.
    difference: float
    by_ddp: float  # largest difference between the averages by hand and by DDP
    all: str  # a hash of the whole model's averaged gradients


@stored("gradients")
@dataclass(frozen=True)
class Gradients:
    """The gradients of one batch, computed in shares by several ranks, and at once."""

    classes: tuple[str, ...]
    shares: tuple[Share, ...]  # by rank
    images: int  # images per rank
    backend: str
    environment: Environment
    date: str

    @property
    def agree(self) -> bool:
        """Whether all ranks have the same average, bit for bit."""
        return len({share.all for share in self.shares}) == 1


@stored("repeat")
@dataclass(frozen=True)
class Repeat:
    done: int
    of: int


@dataclass(frozen=True)
class Step:
    ranks: int
    threads: int  # CPU threads per rank
    seconds: tuple[float, ...]  # a step's time on the slowest rank, one for each repeat
    silent: tuple[float, ...] = ()  # the same times without exchanging gradients

    @property
    def exchange(self) -> float:
        """Median seconds of exchanging gradients and waiting for other ranks.

        This is 0 for a single rank, or if a step with the exchange isn't slower.
        """
        pairs = zip(self.seconds, self.silent, strict=False)
        differences = [with_exchange - without for with_exchange, without in pairs]
        return max(0.0, median(differences or [0.0]))


@stored("cost")
@dataclass(frozen=True)
class Cost:
    model: str
    batch_size: int  # images of all ranks together
    steps: tuple[Step, ...]  # the first is a step of one rank with one thread
    cores: int
    backend: str
    environment: Environment
    date: str

    def speedup(self, step: Step) -> Speedup:
        """The step's speedup over one rank with one thread."""
        return paired(self.steps[0].seconds, step.seconds)

    def rows(self) -> list[rows.Row]:
        return [
            rows.row(
                f"step on {step.ranks} ranks",
                step.seconds,
                self.environment,
                self.date,
                **rows.pick(step, "ranks threads_of_each=threads"),
                **rows.pick(self, "model batch_size backend"),
                exchange_seconds=step.exchange,
                speedup=self.speedup(step).ratio,
            )
            for step in self.steps
        ]
