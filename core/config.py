"""What to train and how, as one frozen dataclass that is validated when it is made.

Nothing here imports torch: the web server builds and checks configurations too.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, Self, get_type_hints

from core.errors import quoted

IMAGE_TASKS = ("fashion-mnist", "sprites")
TASKS = (*IMAGE_TASKS, "regression")
IMAGE_MODELS = ("ann", "cnn")
MODELS = (*IMAGE_MODELS, "simple")
CRITERIA = ("cross-entropy", "mse", "gaussian")
DEVICES = ("auto", "cpu", "cuda", "mps", "xpu")
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
# What fits each task; the first is taken where nothing is said.
MODELS_FOR = {**dict.fromkeys(IMAGE_TASKS, IMAGE_MODELS), "regression": ("simple",)}
CRITERIA_FOR = {
    **dict.fromkeys(IMAGE_TASKS, ("cross-entropy",)),
    "regression": ("mse", "gaussian"),
}
RANGES = {
    "epochs": (1, 200),
    "batch_size": (1, 4096),
    "seed": (0, 2**32 - 1),
    "num_workers": (0, 16),
}
# Both at once would be hours, while others wait: a run has an end for all its epochs.
TRAIN_SAMPLES = {"fashion-mnist": 60_000, "sprites": 12_000, "regression": 4_000}
MOST_SAMPLES, MOST_STEPS = 3_000_000, 200_000

# What a machine may be called. Pages show it as it is: none may be read as a link.
NAME = re.compile(r"(?!.*www\.)[\w .-]{0,63}", re.IGNORECASE)
A_NAME = (
    "a name, no link, of at most 63 letters, digits, spaces, hyphens, dots and "
    "underscores"
)
MOST_NOTICES = 5  # that one address gets

LABELS = {  # what each setting is called on screen and in messages
    "task": "Task",
    "model": "Model",
    "criterion": "Criterion",
    "device": "Device",
    "host": "Machine",
    "feed": "Feed",
    "epochs": "Epochs",
    "batch_size": "Batch size",
    "learning_rate": "Learning rate",
    "weight_decay": "Weight decay",
    "schedule": "Schedule",
    "augment": "Flip images",
    "seed": "Seed",
    "num_workers": "Loader workers",
    "pin_memory": "Pinned memory",
    "non_blocking": "Non-blocking copies",
}

# What each model is trained with where nothing else is said, and what it reaches: see
# docs/experiments.md.
RECIPES: dict[str, dict[str, Any]] = {
    "ann": {
        "epochs": 5,
        "batch_size": 64,
        "learning_rate": 1e-3,
        "weight_decay": 0.0,
        "schedule": "constant",
        "augment": False,
    },
    "cnn": {
        "epochs": 10,
        "batch_size": 128,
        "learning_rate": 1e-2,
        "weight_decay": 0.05,
        "schedule": "one-cycle",
        "augment": True,
    },
    "simple": {
        "epochs": 30,
        "batch_size": 32,
        "learning_rate": 5e-3,
        "weight_decay": 0.0,
        "schedule": "one-cycle",
        "augment": False,
    },
}

# The fast setting: about as good, sooner, with all data on the device.
FAST: dict[str, dict[str, Any]] = {
    "ann": {
        "feed": "device",
        "epochs": 5,
        "batch_size": 128,
        "learning_rate": 4e-3,
        "weight_decay": 0.0,
        "schedule": "one-cycle",
        "augment": False,
    },
    "cnn": {
        "feed": "device",
        "epochs": 8,
        "batch_size": 128,
        "learning_rate": 1e-2,
        "weight_decay": 0.05,
        "schedule": "one-cycle",
        "augment": True,
    },
}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One training run. ValueError has a sentence for each value that can't be."""

    task: str = "fashion-mnist"  # the dataset
    model: str = "ann"  # the architecture
    criterion: str = "cross-entropy"  # the loss, see core.criteria
    device: str = "auto"  # "auto": the accelerator if there is one, else the CPU
    host: str = ""  # the machine, where several have workers; empty: any
    feed: str = "memory"  # how batches reach the model, see core.data.batches
    epochs: int = 5  # passes over the training set
    batch_size: int = 64  # samples in a step
    learning_rate: float = 1e-3  # of AdamW; with one-cycle, the peak
    weight_decay: float = 0.0  # of AdamW, which without it is Adam
    schedule: str = "constant"  # of the learning rate, over the whole run
    augment: bool = False  # flip half of the training images, drawn anew each epoch
    seed: int = 0  # of the weights, the order of the samples, the flips
    num_workers: int = 0  # processes that load batches; feed "dataloader" only
    pin_memory: bool = False  # page-locked batches; feed "dataloader" only
    non_blocking: bool = True  # the host goes on while pinned batches are copied

    def __post_init__(self) -> None:
        if told := " ".join(problems(vars(self))):
            raise ValueError(told)

    @property
    def has_images(self) -> bool:
        """Whether images are classified; else numbers are predicted."""
        return self.task in IMAGE_TASKS

    @classmethod
    def with_recipe(cls, *, fast: bool = False, **given: Any) -> Self:
        """What fits the task, with the model's recipe, and all that is given on top.

        With `fast`, the recipe is the one of FAST; ValueError where it has none.
        """
        task = str(given.get("task", cls.task))
        criterion = CRITERIA_FOR.get(task, CRITERIA)[0]
        fit = {"model": MODELS_FOR.get(task, MODELS)[0], "criterion": criterion}
        model = str(given.get("model", fit["model"]))
        if fast and model not in FAST and model in MODELS:
            raise ValueError(
                f"fast must be false for the model {model}: only "
                f"{' and '.join(FAST)} have a fast setting."
            )
        recipe = (FAST if fast else RECIPES).get(model, {})
        return cls(**{**fit, **recipe, **given})

    @classmethod
    def from_strings(cls, given: Mapping[str, str]) -> tuple[Self, list[str]]:
        """A configuration from names and texts, and a sentence for each it ignored.

        Where it ignored many, the last sentence counts them.
        """
        notices = []
        names = {field.name for field in fields(cls)}
        leading: dict[str, Any] = {}  # these say what the rest is by default
        for name in ("task", "model", "fast"):
            with suppress(KeyError, ValueError):  # the loop below tells of it
                more = {name: parse(name, given[name])}
                cls.with_recipe(**leading | more)
                leading |= more
        config = cls.with_recipe(**leading)
        for name, text in given.items():
            try:
                if name == "fast":  # taken above, or there is something to tell
                    fast = parse(name, text)
                    cls.with_recipe(task=config.task, model=config.model, fast=fast)
                elif name in names:
                    config = replace(config, **{name: parse(name, text)})
                else:
                    raise ValueError(f"There is no setting {quoted(name)}.")
            except ValueError as error:
                notices.append(f"{error} It was ignored.")
        if (count := len(notices)) > MOST_NOTICES:
            rest = f"Of the address {count:,} values were ignored; these are some."
            notices[MOST_NOTICES:] = [rest]
        return config, notices


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each value that a run can't have, its name first."""
    wrong: dict[str, str] = {}
    for name, what in _wanted(settings):
        wrong.setdefault(name, what)
    for name, what in wrong.items():
        yield str(_must_be(what, name, settings[name]))
    decisive = ("task", "epochs", "batch_size")
    if not wrong.keys() & set(decisive):
        yield from _too_long(*(settings[name] for name in decisive))


def _wanted(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What must be instead, by the names of the settings that can't be so."""
    task = settings["task"]
    for name, choices in CHOICES.items():
        if settings[name] not in choices:
            yield name, f"one of {', '.join(choices)}"
    for name, (low, high) in RANGES.items():
        value = settings[name]
        if type(value) is not int or not low <= value <= high:
            yield name, f"a whole number from {low} to {high}"
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    if not (_is_finite(rate) and rate > 0):
        yield "learning_rate", "above 0 and finite"
    if not (_is_finite(decay) and decay >= 0):
        yield "weight_decay", "0 or more"
    for name in ("augment", "pin_memory", "non_blocking"):
        if type(settings[name]) is not bool:
            yield name, "true or false"
    if not is_name(settings["host"]):
        yield "host", f"{A_NAME}"
    if task not in TASKS:
        return
    for name, fitting in (("model", MODELS_FOR), ("criterion", CRITERIA_FOR)):
        if settings[name] not in fitting[task]:
            yield name, f"{' or '.join(fitting[task])} for the task {task}"
    if settings["augment"] is True and task not in IMAGE_TASKS:
        yield "augment", f"false for the task {task}, which has no images"


def _too_long(task: str, epochs: int, batch_size: int) -> Iterator[str]:
    """A sentence, where a run had more epochs than others can wait for."""
    samples = TRAIN_SAMPLES[task]
    steps = -(-samples // batch_size)
    most, what, each, limit = min(
        (MOST_SAMPLES // samples, "samples", samples, MOST_SAMPLES),
        (MOST_STEPS // steps, "steps", steps, MOST_STEPS),
    )
    if epochs > most:
        yield (
            f"Epochs must be at most {most} with batch size {batch_size}: {epochs} "
            f"would be {epochs * each:,} {what} of {task}; a run may have {limit:,}."
            + " A larger batch size allows more."
            * (what == "steps")
        )


def _must_be(what: str, name: str, value: Any) -> ValueError:
    called = LABELS.get(name, name)
    return ValueError(f"{called} must be {what}, not {quoted(repr(value))}.")


def is_name(value: Any) -> bool:
    """Whether a machine may be called that; the empty text is any machine."""
    return type(value) is str and NAME.fullmatch(value) is not None


def _is_finite(value: Any) -> bool:
    """Whether it is a number that a float can hold; NaN and infinity are not."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def parse(name: str, text: str) -> Any:
    """The value of `name`, a field or "fast", for a text; ValueError if none."""
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
