"""How fast this machine trains each model, measured before anybody starts a run.

This is plain data, without torch.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from core.config import TRAIN_SAMPLES, RunConfig
from core.measure.environment import Environment
from core.registry import stored

LATEST = 5  # so many of the latest runs tell how busy the machine is


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

    def load(self, runs: Iterable[tuple[RunConfig, float]]) -> float:
        """How many times as long as on the idle machine the latest runs took.

        `runs` are configurations with their seconds, the newest first. 1 without a run
        like one that was timed.
        """
        pairs = ((seconds, self.seconds(config)) for config, seconds in runs)
        known = [*islice(((took, idle) for took, idle in pairs if idle), LATEST)]
        # The sums, not each run's own factor: what a run takes besides its steps would
        # make a short run's factor large.
        idle = sum(expected for _, expected in known)
        return sum(took for took, _ in known) / idle if known else 1.0
