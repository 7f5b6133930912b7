"""A class's rules: plain data that a teacher fills in.

Limits and fixed settings are checked when a job is submitted; hidden controls are just
not drawn.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Self

from core.config import DEVICES, RunConfig, parse
from core.registry import RUN, stored
from core.store.tables import RunSummary
from to_device.errors import ExplainedError

SETTINGS = tuple(setting.name for setting in fields(RunConfig))
CONTROLS = (*SETTINGS, "steps", "repeats", "images")  # a teacher can hide these
# Settings that have controls on other pages, too, not only on Train.
SHARED = ("task", "model", "batch_size", "device")
# Who wins: the run with the fewest seconds or steps to the target accuracy, or the run
# with the best accuracy within WITHIN seconds.
QUESTS = ("seconds", "steps", "accuracy")
WITHIN = 10.0


@stored("rules")
@dataclass(frozen=True)
class Rules:
    """A class's rules.

    Rules() raises ValueError if fixed settings don't fit together, or conflict with a
    limit. Nothing else is checked, since the teacher's controls offer only valid
    values.
    """

    # Limits: None and () stand for no limit.
    runs: int | None = None  # the most training runs of a person
    epochs: int | None = None  # the most epochs of a run
    seconds: int | None = None  # the longest time of a job
    models: tuple[str, ...] = ()  # the models that people may train
    devices: tuple[str, ...] = ()  # the devices that people may use
    # Settings that nobody may change. The values are texts, as in Train's URL.
    fixed: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()  # the controls that aren't drawn, out of CONTROLS
    target: float = 0.88  # the test accuracy of the quest, 0 to 1
    anonymous: bool = False  # whether the projector shows no names
    quest: str = "seconds"  # one of QUESTS
    own_seeds: bool = False  # whether each member trains with a seed of their own

    def __post_init__(self) -> None:
        RunConfig.with_recipe(**self.settings)
        for name, value in self.settings.items():
            if why := self.refusal(name, value):
                raise ValueError(f"A fixed setting conflicts with a limit. {why}")

    @property
    def settings(self) -> dict[str, Any]:
        """The values of fixed settings. Raises ValueError for an invalid value."""
        return {name: parse(name, text) for name, text in self.fixed.items()}

    @property
    def cost(self) -> str:
        """What the quest counts besides accuracy: "steps" or "seconds"."""
        return "steps" if self.quest == "steps" else "seconds"

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The quest's highest cost and lowest accuracy; None stands for no limit."""
        return (WITHIN, None) if self.quest == "accuracy" else (None, self.target)

    def reached(self, run: RunSummary) -> bool:
        """Whether a finished run meets the quest's condition, and so has a place."""
        if self.quest == "accuracy":
            return (run.seconds or 0.0) <= WITHIN
        return (run.accuracy or 0.0) >= self.target

    def worth(self, run: RunSummary) -> tuple[bool, float]:
        """A sort key, which is greater for a better run."""
        reached, cost = self.reached(run), getattr(run, self.cost)
        by_accuracy = reached == (self.quest == "accuracy")
        return reached, (run.accuracy or 0.0) if by_accuracy else -cost

    def score(self, run: RunSummary) -> str:
        """Text such as "88.13% in 590 steps" or "88.13% in 2.4 s"."""
        cost = f"{run.steps:,} step{'s' * (run.steps != 1)}"
        if self.cost == "seconds":
            cost = f"{run.seconds:.1f} s"
        return f"{run.accuracy:.2%} in {cost}"

    def refusal(self, setting: str, value: Any, *, with_fixed: bool = True) -> str:
        """A sentence on why a setting can't have this value; "" if it can.

        Without `with_fixed`, only the limits are checked, not the fixed settings.
        """
        if setting == "epochs" and self.epochs and value > self.epochs:
            most = f"{self.epochs} epoch{'s' * (self.epochs != 1)}"
            return (
                f"In this class, a run may have up to {most}, but this one "
                f"has {value}. Choose fewer."
            )
        allowed = {"model": self.models, "device": self.devices}.get(setting)
        if allowed and value not in allowed:
            either = " or ".join(map(_spelled, allowed))
            other = _spelled(value)
            return (
                f"In this class, the {setting} may be {either}, not {other}. "
                f"Choose another {setting}."
            )
        if with_fixed and setting in self.fixed and value != self.settings[setting]:
            noun, fixed = setting.replace("_", " "), _spelled(self.settings[setting])
            if setting == "seed" and self.own_seeds:
                return (
                    "In this class, each member has a different seed. Your seed "
                    f"is {fixed}, but this run has {value}. Set the seed to "
                    f"{fixed}."
                )
            return (
                f"In this class, the {noun} setting is {fixed} for everybody, "
                f"but this run has {_spelled(value)}."
            )
        return ""

    def allows(self, setting: str, value: Any, *, with_fixed: bool = True) -> bool:
        return not self.refusal(setting, value, with_fixed=with_fixed)

    def for_member(self, seed: int) -> Self:
        if not self.own_seeds or "seed" in self.fixed:
            return self
        return replace(self, fixed=self.fixed | {"seed": str(seed)})

    def check(self, address: str, arguments: tuple[Any, ...]) -> None:
        """Raise ExplainedError if a job may not have these arguments."""
        is_run = address == RUN
        for part in _parts(arguments):
            settings = {"device": part} if isinstance(part, str) else vars(part)
            if isinstance(part, RunConfig) and not is_run:
                by_default = ("device",) if part.device == "auto" else ()
                settings = {name: settings[name] for name in {*SHARED} - {*by_default}}
            for name, value in settings.items():
                # Fixed settings don't apply to the devices that the lesson Compare
                # races against each other: a racing device has no task.
                with_fixed = "task" in settings and (is_run or name in SHARED)
                if why := self.refusal(name, value, with_fixed=with_fixed):
                    raise ExplainedError(why)


NONE = Rules()  # shared: each call of Rules() would check the rules again


def _parts(arguments: Any) -> Iterator[Any]:
    """The arguments that name a device or have a device among their settings.

    Arguments inside tuples count, too, such as the devices of a race.
    """
    for part in arguments:
        if isinstance(part, tuple):
            yield from _parts(part)
        elif part in DEVICES or (is_dataclass(part) and hasattr(part, "device")):
            yield part


def _spelled(value: Any) -> str:
    """The value as people write it: CPU, ANN, 64, on."""
    if isinstance(value, bool):
        return "on" if value else "off"
    short = isinstance(value, str) and value in (*DEVICES[1:], "ann", "cnn")
    return value.upper() if short else str(value)
