"""The results of a race, and sentences on them: plain data, without torch."""

from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from core.config import RunConfig
from core.lessons.compare.candidates import Pair
from core.measure.environment import Environment
from core.measure.rows import Row, pick, row
from core.measure.speedup import Speedup, speedup
from core.results import LossPoint
from core.words import Words

words = Words(__file__)

# Training steps of a trial: a fraction of a second on an idle laptop's CPU.
RACE_STEPS = {"ann": 300, "cnn": 50}


@dataclass(frozen=True)
class TrialProgress:
    passes: ClassVar[bool] = True  # a failed job drops old reports if they lack losses
    candidate: int  # 0 or 1
    repeat: int  # 0 is the warm-up
    step: int  # steps made so far in this trial
    steps: int  # number of steps of the whole trial
    losses: tuple[LossPoint, ...]  # the losses since the last report


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


@dataclass(frozen=True)
class CandidateFailure:
    candidate: int
    message: str


# The loops that have a speedup of their own, and the prefix of their fields in a Trial.
LOOPS = {"training": "train_", "evaluation": "evaluate_", "both": ""}


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


def verdict(race: Race) -> str:
    for failure in race.failures:
        name = race.candidates[failure.candidate].name
        return f"There is no winner: {name} did not finish."
    speedup = race.speedup()
    if speedup is None:
        return "There is no winner: nothing was measured."
    first, second = (candidate.name for candidate in race.candidates)
    pairs = "pairs of heats, each with training and evaluation"
    text = speedup.sentence(first, second, pairs)
    if speedup.winner is None or not speedup.is_sure:
        return text
    return f"{text} {why(race, speedup.winner)}"


SMALL_STEP_MS = 5.0  # shorter steps have operations of about 0.1 ms: too small to share


def why(race: Race, index: int) -> str:
    """Why the winner, at this index, may be faster, judged by the time of a step."""
    winner, loser = race.candidates[index], race.candidates[1 - index]
    step = median(race.seconds(index, "training")) / race.steps * 1e3
    times = winner.threads / loser.threads
    if winner.backend != loser.backend:
        reason = "accelerator" if loser.backend == "CPU" else "cpu"
    elif times >= 1:
        reason = "more" if times > 1 else "same"
    else:
        reason = "fewer_small" if step < SMALL_STEP_MS else "fewer"
    text: str = words.table("race.why")[reason]
    batch = f"{race.config.batch_size:,}"
    return text.format(step=f"{step:.2g}", batch=batch, times=f"{times:g}")


AGREE = 0.01  # relative difference of losses that a reader can't see on the chart


def agreement(race: Race) -> str:
    """A sentence on whether the loss curves agree, and if not, why not."""
    curves = [next((h.losses for h in race.counted(c)), ()) for c in (0, 1)]
    pairs = list(zip(*curves, strict=False))
    if not pairs:
        return ""
    apart = [abs(a.loss - b.loss) / max(abs(a.loss), abs(b.loss)) for a, b in pairs]
    start, most = apart[0], max(apart)
    if most == 0:
        return words("race.losses.same")
    has_convolutions, tf32 = race.config.model == "cnn", ""
    first, second = race.candidates
    if has_convolutions and "CUDA" in (first.backend, second.backend):
        tf32 = words("race.losses.tf32")
    if most < AGREE:
        return words("race.losses.rounding", most=f"{most:.1g}", tf32=tf32)
    if has_convolutions and first.device != second.device:
        return words("race.losses.dropout", most=f"{most:.1%}")
    return words(
        "race.losses.order", start=f"{start:.1g}", most=f"{most:.1%}", tf32=tf32
    )
