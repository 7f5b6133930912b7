"""How fast this machine trains each model, measured before anybody starts a run.

This is plain data, without torch.
"""

from dataclasses import dataclass

from core.config import TRAIN_SAMPLES, RunConfig
from core.measure.environment import Environment
from core.registry import stored


@dataclass(frozen=True)
class Pace:
    """One configuration's pace, in seconds for an image."""

    config: RunConfig
    training: float
    evaluating: float
    evaluated: int  # images that a run evaluates after each epoch

    def epoch_seconds(self) -> float:
        trained = TRAIN_SAMPLES[self.config.task] * self.training
        return trained + self.evaluated * self.evaluating


@stored("pace")
@dataclass(frozen=True)
class Paces:
    paces: tuple[Pace, ...]
    environment: Environment
    date: str

    def seconds(self, config: RunConfig) -> float | None:
        """How long a run takes on an idle machine; None if nothing like it was timed.

        Settings such as the learning rate don't change the pace.
        """
        if config.device not in ("auto", self.environment.device):
            return None
        for pace in self.paces:
            if pace.config.is_as_fast_as(config):
                return config.epochs * pace.epoch_seconds()
        return None
