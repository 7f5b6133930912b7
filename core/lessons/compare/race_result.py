"""The results of a race: plain data, without torch."""

from dataclasses import dataclass
from statistics import median

from core.config import RunConfig
from core.lessons.compare.candidates import Pair
from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, speedup
from core.registry import stored
from core.results import LossPoint

# Training steps of a trial: a fraction of a second on an idle laptop's CPU.
RACE_STEPS = {"ann": 300, "cnn": 50}


@stored("trial_progress")
@dataclass(frozen=True)
class TrialProgress:
    candidate: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    step: int  # steps made so far in this trial
    steps: int  # number of steps of the whole trial
    losses: tuple[LossPoint, ...]  # the losses since the last report


@stored("trial")
@dataclass(frozen=True)
class Trial:
    candidate: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    steps: int  # training steps
    train_seconds: float
    train_samples: int
    evaluate_seconds: float
    evaluate_samples: int
    joules: float | None  # the whole GPU's energy, by NVML; None if NVML can't tell
    losses: tuple[LossPoint, ...]

    @property
    def seconds(self) -> float:
        return self.train_seconds + self.evaluate_seconds


@stored("candidate_failure")
@dataclass(frozen=True)
class CandidateFailure:
    candidate: int
    message: str


# The loops that have a speedup of their own, and the prefix of their fields in a Trial.
LOOPS = {"training": "train_", "evaluation": "evaluate_", "both": ""}


@stored("race")
@dataclass(frozen=True)
class Race:
    """The trials of two candidates. During the race, these are the trials so far."""

    candidates: Pair
    # None for a candidate that has not finished a trial.
    environments: tuple[Environment | None, Environment | None]
    config: RunConfig  # the race ignores its device and its epochs
    steps: int  # training steps in each counted trial
    repeats: int  # as requested; a slow race ends after fewer
    trials: tuple[Trial, ...]
    failures: tuple[CandidateFailure, ...]
    date: str

    def counted(self, candidate: int) -> list[Trial]:
        """The trials of a candidate after its warm-up, in order."""
        return [t for t in self.trials if t.candidate == candidate and t.repeat]

    def seconds(self, candidate: int, loop: str) -> list[float]:
        """Seconds of each counted trial; `loop` is one of LOOPS."""
        name = f"{LOOPS[loop]}seconds"
        return [getattr(trial, name) for trial in self.counted(candidate)]

    def speedup(self, loop: str = "both") -> Speedup | None:
        """Speedup of the second candidate over the first."""
        return speedup(self.seconds(0, loop), self.seconds(1, loop))

    def rows(self) -> list[Row]:
        """A row per candidate and loop; the warm-up has its own rows, with n = 1."""
        rows = []
        for index, candidate in enumerate(self.candidates):
            environment = self.environments[index]
            warm_up = [t for t in self.trials if t.candidate == index and not t.repeat]
            for trials, note in ((self.counted(index), ""), (warm_up, ", warm-up")):
                if environment is None or not trials:
                    continue
                joules = [t.joules for t in trials if t.joules is not None]
                for loop in ("training", "evaluation"):
                    name = LOOPS[loop]
                    seconds = [getattr(trial, f"{name}seconds") for trial in trials]
                    rate = getattr(trials[0], f"{name}samples") / median(seconds)
                    rows.append(
                        row(
                            f"{loop}{note}",
                            seconds,
                            environment,
                            self.date,
                            contender=candidate.name,
                            **pick(self.config, "task model batch_size"),
                            steps=trials[0].steps if note else self.steps,
                            seed=self.config.seed,
                            joules_a_heat=median(joules) if joules else None,
                            samples_per_second=None if note else rate,
                        )
                    )
        return rows
