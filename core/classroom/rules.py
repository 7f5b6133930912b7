"""What a class allows: plain data, that a teacher fills in and the server holds to.

What is fixed or limited is refused when a job is submitted, however it came to be
asked for. What is hidden is only not drawn.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from core.config import DEVICES, MODELS, RunConfig, parse
from core.errors import ExplainedError

RUN = "core.training:run"  # what a training run calls
SETTINGS = tuple(each.name for each in fields(RunConfig))
# What may be left out on Train, Compare and Speed, where they have it.
CONTROLS = (*SETTINGS, "steps", "repeats", "images")
# What the configuration of another job, of a race say, has by somebody's choice.
SHARED = ("task", "model", "batch_size")


@dataclass(frozen=True)
class Rules:
    """Raises ValueError, one sentence, for a value that it can't have."""

    runs: int | None = None  # training runs that each may begin; None: any number
    epochs: int | None = None  # of a run, at most
    seconds: int | None = None  # that a job may take
    models: tuple[str, ...] = ()  # those that may be trained; empty: all
    devices: tuple[str, ...] = ()  # those that may be used; empty: all
    # Settings of RunConfig that nobody chooses, as they stand in an address.
    fixed: dict[str, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()  # some of CONTROLS
    target: float = 0.88  # the test accuracy of the quest, 0 to 1
    anonymous: bool = False  # whether the projector shows no names

    def __post_init__(self) -> None:
        for name in ("runs", "epochs", "seconds"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ValueError(f"{name} must be a whole number above 0, or none.")
        for name, known in (
            ("models", MODELS),
            ("devices", DEVICES),
            ("hidden", CONTROLS),
        ):
            if unknown := set(getattr(self, name)) - set(known):
                raise ValueError(f"{', '.join(sorted(unknown))} can't be in {name}.")
        if not 0 < self.target < 1:
            raise ValueError("The target must be above 0% and below 100%.")
        if unknown := set(self.fixed) - set(SETTINGS):
            raise ValueError(f"There is no setting {', '.join(sorted(unknown))}.")
        RunConfig.with_recipe(**self.settings)
        try:
            self._check_limits(self.settings)
        except ExplainedError as error:
            raise ValueError(f"What is fixed breaks a limit. {error}") from None

    @property
    def settings(self) -> dict[str, Any]:
        """The values of what is fixed; ValueError for one that can't be."""
        return {name: parse(name, text) for name, text in self.fixed.items()}

    def check(self, address: str, arguments: tuple[Any, ...]) -> None:
        """ExplainedError where the call of a function with these may not be."""
        is_run = address == RUN
        for thing in _flat(arguments):
            has = {"device": thing} if isinstance(thing, str) else vars(thing)
            if isinstance(thing, RunConfig) and not is_run:
                names = SHARED if thing.device == "auto" else (*SHARED, "device")
                has = {name: has[name] for name in names}
            self._check_limits(has)
            if "task" in has:  # else a candidate of a race, which is no run on it
                self._check_fixed(has, SETTINGS if is_run else (*SHARED, "device"))

    def _check_limits(self, chosen: Mapping[str, Any]) -> None:
        epochs = chosen.get("epochs", 0)
        if self.epochs is not None and epochs > self.epochs:
            raise ExplainedError(
                f"In this class a run has up to {self.epochs} "
                f"epoch{'s' * (self.epochs != 1)}, and this one has {epochs}. Choose "
                "fewer."
            )
        for name, allowed, noun in (
            ("model", self.models, "model"),
            ("device", self.devices, "device"),
        ):
            value = chosen.get(name)
            if value is not None and allowed and value not in allowed:
                raise ExplainedError(
                    f"In this class the {noun} may be {_either(allowed)}, not "
                    f"{_called(value)}. Choose another {noun}."
                )

    def _check_fixed(self, chosen: Mapping[str, Any], names: Collection[str]) -> None:
        for name, value in self.settings.items():
            if name in names and chosen.get(name, value) != value:
                raise ExplainedError(
                    f"In this class the setting {name.replace('_', ' ')} is "
                    f"{_called(value)} for all, and this has {_called(chosen[name])}."
                )


NONE = Rules()  # checked once: a page asks for what holds some twenty times


def _flat(arguments: Any) -> Iterator[Any]:
    """What is in arguments that a rule may be about: devices, and what has settings."""
    for each in arguments:
        if isinstance(each, tuple):
            yield from _flat(each)
        elif each in DEVICES or (is_dataclass(each) and hasattr(each, "device")):
            yield each


def _called(value: Any) -> str:
    """As people write it: CPU, ANN, 64, on."""
    if isinstance(value, bool):
        return "on" if value else "off"
    short = isinstance(value, str) and value in (*DEVICES[1:], "ann", "cnn")
    return value.upper() if short else str(value)


def _either(values: tuple[str, ...]) -> str:
    """Any of some: "CPU or CUDA"."""
    return " or ".join(map(_called, values))
