"""A training run's settings, checked when made. Torch isn't imported here."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Self, get_type_hints

from core.registry import stored
from to_device.errors import quoted
from to_device.names import SIMULATED
from to_device.words import Words

IMAGE_TASKS = ("fashion-mnist", "sprites")
TASKS = (*IMAGE_TASKS, "regression")
IMAGE_MODELS = ("ann", "cnn")
MODELS = (*IMAGE_MODELS, "simple")
CRITERIA = ("cross-entropy", "mse", "gaussian")
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu", SIMULATED)
FEEDS = ("memory", "device", "dataloader")
SCHEDULES = ("constant", "one-cycle")

CHOICES = {
    "task": TASKS,
    "model": MODELS,
    "criterion": CRITERIA,
    "device": DEVICES,
    "feed": FEEDS,
    "schedule": SCHEDULES,
}
# Which models and criteria fit each task; the first one is the task's default.
MODELS_FOR = {**dict.fromkeys(IMAGE_TASKS, IMAGE_MODELS), "regression": ("simple",)}
CRITERIA_FOR = {
    **dict.fromkeys(IMAGE_TASKS, ("cross-entropy",)),
    "regression": ("mse", "gaussian"),
}
IMAGE_SWITCHES = ("augment", "half", "normalize", "mirror")
SWITCHES = (*IMAGE_SWITCHES, "pin_memory", "non_blocking", "item_each_step")
RANGES = {
    "epochs": (1, 200),
    "batch_size": (1, 4096),
    "seed": (0, 2**32 - 1),
    "num_workers": (0, 16),
}
# Samples in each training set; the most samples and steps of a run. Without a limit, a
# run of many epochs with small batches would keep others waiting for hours.
TRAIN_SAMPLES = {"fashion-mnist": 60_000, "sprites": 12_000, "regression": 4_000}
MOST_SAMPLES, MOST_STEPS = 3_000_000, 200_000

# The name of a machine. Pages show it unchanged, so it must not look like a link.
NAME = re.compile(r"(?!.*www\.)[\w .-]{0,63}", re.IGNORECASE)
A_NAME = (
    "a name of up to 63 letters, digits, spaces, hyphens, periods, and underscores "
    "(no links)"
)
MOST_NOTICES = 5  # sentences about ignored settings in a page's address

words = Words(__file__)
LABELS: dict[str, str] = words.table("labels")  # the settings' names on pages

# Each model's default settings. docs/experiments.md has the results with them.
PLAIN = {
    "half": False,
    "label_smoothing": 0.0,
    "dropout": 0.1,
    "normalize": False,
    "mirror": False,
}
CONSTANT = {"weight_decay": 0.0, "schedule": "constant", "augment": False} | PLAIN
RECIPES: dict[str, dict[str, Any]] = {
    "ann": CONSTANT | {"epochs": 5, "batch_size": 64, "learning_rate": 1e-3},
    "cnn": PLAIN
    | {
        "epochs": 10,
        "batch_size": 128,
        "learning_rate": 1e-2,
        "weight_decay": 0.05,
        "schedule": "one-cycle",
        "augment": True,
    },
    "simple": CONSTANT
    | {
        "epochs": 30,
        "batch_size": 32,
        "learning_rate": 5e-3,
        "schedule": "one-cycle",
    },
}
# Settings that reach about the same accuracy as RECIPES in less time: the recipe of
# core/lessons/speed/recipe.py. All data is on the device.
TUNED: dict[str, Any] = {
    "feed": "device",
    "batch_size": 128,
    "weight_decay": 0.05,
    "schedule": "one-cycle",
    "half": True,
    "label_smoothing": 0.1,
    "dropout": 0.0,
    "normalize": True,
}
FAST: dict[str, dict[str, Any]] = {
    "ann": RECIPES["ann"] | TUNED | {"epochs": 3, "learning_rate": 6e-3},
    "cnn": RECIPES["cnn"] | TUNED | {"epochs": 6, "mirror": True},
}


@stored("settings")
@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of one run. Raises ValueError with a sentence for each bad value."""

    task: str = "fashion-mnist"  # the dataset
    model: str = "ann"  # the architecture
    criterion: str = "cross-entropy"  # the loss, see core.loss_functions
    device: str = "auto"  # "auto": the accelerator if there is one, else the CPU
    host: str = ""  # the machine whose worker trains; empty: any machine
    feed: str = "memory"  # how batches reach the model, see core.data.feeds
    epochs: int = 5  # passes over the training set
    batch_size: int = 64  # samples in a step
    learning_rate: float = 1e-3  # with the schedule one-cycle, this is the peak
    weight_decay: float = 0.0  # at 0, AdamW is the same as Adam
    schedule: str = "constant"  # how the learning rate changes over the whole run
    augment: bool = False  # flip a random half of the images in each epoch
    half: bool = False  # compute in bfloat16 where the device itself can
    label_smoothing: float = 0.0  # the share of a target that all classes get alike
    dropout: float = 0.1  # the share of the CNN's last features that a step drops
    normalize: bool = False  # ANN: standardized pixels; CNN: whitening first filters
    mirror: bool = False  # test each image together with its mirror image
    seed: int = 0  # sets the weights, the order of the samples, and the flips
    num_workers: int = 0  # processes that load batches; feed "dataloader" only
    pin_memory: bool = False  # page-locked batches; feed "dataloader" only
    non_blocking: bool = True  # the host goes on while pinned batches are copied
    item_each_step: bool = False  # fetch each step's loss; the host waits for it

    def __post_init__(self) -> None:
        if message := " ".join(problems(vars(self))):
            raise ValueError(message)

    @property
    def has_images(self) -> bool:
        """Whether the inputs are images; without images, the model predicts numbers."""
        return self.task in IMAGE_TASKS

    @classmethod
    def with_recipe(cls, *, fast: bool = False, **settings: Any) -> Self:
        """A configuration: these settings, and others from the model's recipe and task.

        With `fast`, the recipe comes from FAST. Raises ValueError if FAST has none for
        the model.
        """
        task = str(settings.get("task", cls.task))
        criterion = CRITERIA_FOR.get(task, CRITERIA)[0]
        fit = {"model": MODELS_FOR.get(task, MODELS)[0], "criterion": criterion}
        model = str(settings.get("model", fit["model"]))
        if fast and model not in FAST and model in MODELS:
            raise ValueError(
                f"fast must be false for the model {model}: only "
                f"{' and '.join(FAST)} have a fast setting."
            )
        recipe = (FAST if fast else RECIPES).get(model, {})
        return cls(**{**fit, **recipe, **settings})

    def is_as_fast_as(self, other: Self) -> bool:
        """Whether an epoch takes as long on the same device as with other settings."""
        names = (
            *("task", "model", "feed", "batch_size", "augment", "half", "mirror"),
            "item_each_step",
        )
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @classmethod
    def from_strings(cls, texts: Mapping[str, str]) -> tuple[Self, list[str]]:
        """A configuration from names and texts, and a sentence on each ignored name.

        If there are more than MOST_NOTICES, a last sentence counts all ignored names.
        """
        notices = []
        names = {field.name for field in fields(cls)}
        leading: dict[str, Any] = {}  # settings that decide other settings' defaults
        for name in ("task", "model", "fast"):
            with suppress(KeyError, ValueError):  # the loop below reports the error
                settings = leading | {name: parse(name, texts[name])}
                cls.with_recipe(**settings)
                leading = settings
        config = cls.with_recipe(**leading)
        for name, text in texts.items():
            try:
                if name == "fast":  # was applied above; here, a wrong value raises
                    fast = parse(name, text)
                    cls.with_recipe(task=config.task, model=config.model, fast=fast)
                elif name in names:
                    config = replace(config, **{name: parse(name, text)})
                else:
                    raise ValueError(f"There's no setting called {quoted(name)}.")
            except ValueError as error:
                notices.append(f"{error} The app ignored this setting.")
        if (count := len(notices)) > MOST_NOTICES:
            rest = f"In all, the app ignored {count:,} settings in the address."
            notices[MOST_NOTICES:] = [rest]
        return config, notices


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """A sentence on each impossible value, or one on a run that is too long."""
    wrong: dict[str, str] = {}
    for name, requirement in _mistakes(settings):
        wrong.setdefault(name, requirement)
    for name, requirement in wrong.items():
        yield str(_must_be(requirement, name, settings[name]))
    if wrong.keys() & {"task", "epochs", "batch_size"}:
        return
    task, epochs, size = settings["task"], settings["epochs"], settings["batch_size"]
    samples = TRAIN_SAMPLES[task]
    steps = -(-samples // size)
    most, noun, limit = min(
        (MOST_SAMPLES // samples, "samples", MOST_SAMPLES),
        (MOST_STEPS // steps, "steps", MOST_STEPS),
    )
    if epochs > most:
        advice = " Larger batches allow more epochs." if noun == "steps" else ""
        yield (
            f"{epochs} epochs is too many for {task} with batch size {size}. "
            f"Choose at most {most}: a run may have at most {limit:,} {noun}.{advice}"
        )


def _mistakes(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of settings with impossible values, each with what its value must be."""
    task = settings["task"]
    for name, choices in CHOICES.items():
        if settings[name] not in choices:
            yield name, f"one of {', '.join(choices)}"
    for name, (low, high) in RANGES.items():
        value = settings[name]
        if type(value) is not int or not low <= value <= high:
            yield name, f"a whole number from {low} to {high:,}"
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    if not (_is_finite(rate) and rate > 0):
        yield "learning_rate", "above 0 and finite"
    if not (_is_finite(decay) and decay >= 0):
        yield "weight_decay", "0 or more"
    for name in ("label_smoothing", "dropout"):
        if not (_is_finite(settings[name]) and 0 <= settings[name] < 1):
            yield name, "at least 0 and below 1"
    for name in SWITCHES:
        if type(settings[name]) is not bool:
            yield name, "true or false"
    if not is_name(settings["host"]):
        yield "host", A_NAME
    if task not in TASKS:
        return
    for name, fitting in (("model", MODELS_FOR), ("criterion", CRITERIA_FOR)):
        if settings[name] not in fitting[task]:
            yield name, f"{' or '.join(fitting[task])} for the task {task}"
    if task in IMAGE_TASKS:
        return
    for name in IMAGE_SWITCHES:
        if settings[name] is True:
            yield name, f"false for the task {task}"
    if settings["label_smoothing"] != 0:
        yield "label_smoothing", f"0 for the task {task}"


def _must_be(requirement: str, name: str, value: Any) -> ValueError:
    label = LABELS.get(name, name)
    return ValueError(f"{label} must be {requirement}, not {quoted(repr(value))}.")


def is_name(value: Any) -> bool:
    """Whether the value can be a machine's name, or is "", which means any machine."""
    return type(value) is str and NAME.fullmatch(value) is not None


def _is_finite(value: Any) -> bool:
    """Whether the value is a number that a float can hold, so not NaN or infinite."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def parse(name: str, text: str) -> Any:
    """Convert a text to the type of a setting. Raises ValueError if that fails."""
    kind = bool if name == "fast" else get_type_hints(RunConfig)[name]
    if kind is bool:
        if text.lower() not in ("true", "false", "1", "0"):
            raise _must_be("true or false", name, text)
        return text.lower() in ("true", "1")
    try:
        return kind(text)
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise _must_be(noun, name, text) from None
