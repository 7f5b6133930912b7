"""What a run tells while it goes on, and what is left of it when it ends.

All of it is plain data that travels between processes; nothing here imports torch.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from core.config import RunConfig


@dataclass(frozen=True)
class PickedUp:
    """A worker has begun with a job; the first event of every job."""

    worker: str


@dataclass(frozen=True)
class Started:
    """A run begins: where the run goes on, and how long it is."""

    environment: dict[str, Any]  # see core.device.environment
    parameters: int
    steps: int  # in the whole run
    train_images: int
    test_images: int


@dataclass(frozen=True)
class Steps:
    """Some steps were made."""

    step: int  # made so far, in the whole run
    losses: tuple[tuple[int, float], ...]  # (step, loss) of the steps to be drawn
    samples_per_second: float  # in this epoch, evaluation not counted
    seconds: float  # since the run began


@dataclass(frozen=True)
class Epoch:
    """An epoch ended and the model was evaluated."""

    epoch: int  # 1, 2, ...
    step: int  # made so far
    loss: float  # mean over the samples of this epoch, as they were trained on
    train_loss: float  # of the model as it is now, on the first training images
    train_accuracy: float
    test_loss: float
    test_accuracy: float
    seconds: float  # of training, evaluation not counted
    samples_per_second: float


@dataclass(frozen=True)
class RunResult:
    """A finished run."""

    config: RunConfig
    environment: dict[str, Any]
    parameters: int
    history: tuple[Epoch, ...]
    losses: tuple[tuple[int, float], ...]  # (step, loss)
    test_correct: int
    test_total: int
    seconds: float  # from the first step to the last evaluation
    checkpoint: bytes = field(repr=False)  # the state_dict, as torch.save writes it

    @property
    def test_accuracy(self) -> float:
        return self.test_correct / self.test_total

    def to_json(self) -> dict[str, Any]:
        """All but the checkpoint and the single steps, ready for json.dumps."""
        return {
            "config": asdict(self.config),
            "device": self.environment["device"],
            "environment": self.environment,
            "parameters": self.parameters,
            "history": [asdict(epoch) for epoch in self.history],
            "test_correct": self.test_correct,
            "test_total": self.test_total,
            "test_accuracy": self.test_accuracy,
            "seconds": self.seconds,
        }
