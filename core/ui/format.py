"""Names and numbers as people read them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import date
from statistics import quantiles
from typing import Any

from core.config import RunConfig
from core.measure.environment import Environment
from core.measure.rounding import precise
from core.results import RunResult
from to_device.words import Words

words = Words(__file__)
NAMES: dict[str, str] = words.table("names")
ENDINGS: dict[str, str] = words.table("endings")
SETTINGS: dict[str, str] = words.table("settings")
VALUES: dict[str, str] = words.table("values")
# Classes of models and loss functions, in core/models.py, core/loss_functions.py or
# torch.nn
CLASSES = {
    "ann": "ANN",
    "cnn": "CNN",
    "simple": "SimpleRegressionNet",
    "cross-entropy": "CrossEntropyLoss",
    "mse": "MSELoss",
    "gaussian": "GaussianLoss",
}


def setting(config: Any, field: str) -> str:
    """A setting in a word or two: "batch 64", "CNN", "lr 0.001"."""
    value = getattr(config, field)
    if field == "epochs" and value:
        return counted(value, "epoch")
    return f"{SETTINGS[field]} {VALUES.get(value) or plain(value)}".strip()


def plain(value: Any) -> str:
    """The value of a setting by itself: "on", "CNN", "0.001"."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else NAMES.get(value, str(value))


def differences(configs: Sequence[RunConfig]) -> list[str]:
    """Return a text for each run: its values of all settings in which the runs differ.

    If the runs differ in no setting, the text is the run's model.
    """
    names = (field.name for field in fields(RunConfig))
    counts = {n: len({getattr(config, n) for config in configs}) for n in names}
    differing = [name for name in counts if counts[name] > 1]
    # Settings with the most values come first: a table may cut the end of a text.
    differing.sort(key=lambda name: -counts[name])
    return [
        ", ".join(setting(config, field) for field in differing) or NAMES[config.model]
        for config in configs
    ]


def brief(run: Any) -> str:
    """Describe a run by its main settings: "CNN on Sprites, 3 epochs, batch 64"."""
    epochs = counted(run.epochs, "epoch")
    return f"{subject(run)}, {epochs}, batch {run.batch_size}"


def steered(run: Any) -> str:
    """Whether somebody changed the run's learning rate while it trained; "" if not."""
    return "steered by hand" if run.changes else ""


def subject(run: Any) -> str:
    """What a run trains on which task, such as "CNN on Sprites"."""
    return f"{NAMES[run.model]} on {NAMES[run.task]}"


def quality(result: RunResult) -> str:
    """Test accuracy such as "87.60%", or for regression "R² 0.946"."""
    if result.test_accuracy is not None:
        return f"{result.test_accuracy:.2%}"
    return f"R² {result.r2:.3f}"


def duration(seconds: float) -> str:
    """Text such as "3.4 s", "1 min 20 s" or "2 h 5 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min" if rest else f"{hours} h"


# Up to how many seconds an estimate is exact to so many
ROUGH = ((10, 1), (60, 5), (120, 10), (3600, 60), (math.inf, 600))


def roughly(seconds: float) -> str:
    """The duration of what isn't over yet, as exact as an estimate can be."""
    exact = next(step for end, step in ROUGH if seconds < end)
    rounded = max(1, exact * round(seconds / exact))
    return duration(rounded).replace(".0 s", " s")


def day(when: date) -> str:
    """Text such as "November 4, 2026"; strftime's %d would write November 04."""
    return f"{when:%B} {when.day}, {when.year}"


def ago(seconds: float) -> str:
    """Text such as "just now", "5 minutes ago" or "2 days ago"."""
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def spread(seconds: Sequence[float]) -> str:
    """The shortest to the longest: "3.41 ms to 3.62 ms"."""
    return f"{precise(min(seconds))} to {precise(max(seconds))}"


def middle_half(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile of at least two values."""
    first, _, third = quantiles(values, method="inclusive")
    return first, third


def size(count: float | None) -> str:
    """A number of bytes with a unit: 47 MB, 25.3 GB."""
    if count is None:
        return "unknown"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 999.5:  # otherwise, three digits would round up to 1e+03
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def power_of_two(count: int) -> str:
    """Text such as "4 KB" for 4096 bytes."""
    units = iter(("B", "KB", "MB", "GB"))
    unit = next(units)
    while count >= 1024:
        count, unit = count // 1024, next(units)
    return f"{count} {unit}"


def shape(dimensions: tuple[int, ...]) -> str:
    """Text such as "64 × 1 × 28 × 28", or "scalar" without dimensions."""
    return " × ".join(map(str, dimensions)) or "scalar"


def counted(count: int, noun: str, several: str = "") -> str:
    """Text such as "1 core" or "1,000 points"; `several` is an irregular plural."""
    return f"{count:,} {noun if count == 1 else several or f'{noun}s'}"


def enumerated(names: Iterable[str]) -> str:
    """Text such as "one, two, and three"."""
    *most, last = names
    return f"{', '.join(most)}{',' * (len(most) > 1)} and {last}" if most else last


def provenance(environment: Environment) -> str:
    """The hardware and software of a measurement, as a text for its caption."""
    hardware = environment.device_name
    if not environment.is_simulated:
        hardware += f" ({environment.backend})"
    return (
        f"{hardware}, {counted(environment.threads, 'CPU thread')}, "
        f"torch {environment.torch}, Python {environment.python}"
    )
