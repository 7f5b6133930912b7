"""What Device, Model and Compare show on this machine, as data."""

from functools import partial
from typing import Any

from core import devices
from core.config import IMAGE_MODELS
from core.jobs import child_process
from core.lessons.compare.candidates import candidates, default_pair
from core.lessons.device import hardware, idioms, parallel
from core.lessons.model import batch_steps, model_to, transfers
from to_device.diagnose.diagnosis import diagnose
from to_device.diagnose.facts import probe
from to_device.names import SIMULATED
from tools.accelerator.step import Part, Results, Setting, WrongError, work_through

UNTRIED = "NVML, moves between two memories, pinned copies, a race."
MOVES = ("model", "loss", "inputs", "labels")


def run(setting: Setting, results: Results) -> None:
    here = str(setting.device)
    size = 64 if setting.tiny else None
    sizes = transfers.SIZES[: 2 if setting.tiny else None]
    parts = {
        "facts": partial(
            child_process.call, "to_device.diagnose.facts:probe", seconds=60
        ),
        "diagnosis": diagnosed,
        "devices": hardware.describe,
        "load": hardware.now,
        "ways to ask": idioms.answers,
        "default device": default_device,
        "why a GPU is fast": partial(parallel.measure, here, size=size),
        "moves": lambda: [model_to.move(model, here) for model in IMAGE_MODELS],
        "time of a move": partial(model_to.time_move, "ann", here),
        "in place, or a copy": partial(model_to.tried, here),
        "optimizer before the move": partial(optimizer, here),
        "a move forgotten": partial(with_one_forgotten, here),
        "one batch": partial(
            batch_steps.inspect_batch, setting.task, "ann", here, 0, 2
        ),
        "transfers": partial(transfers.measure, here, sizes=sizes),
        "who can race": who_can_race,
    }
    work_through(
        [Part(name, 10.0, work) for name, work in parts.items()], setting, results
    )


def diagnosed() -> Any:
    """Why torch uses what it uses; wrong where it has an accelerator it can't use."""
    found = diagnose(probe())
    if devices.accelerator() is not None and found.state == "broken":
        raise WrongError(f"It is told to be broken: {found}.", found)
    return found


def default_device() -> Any:
    """In a process of its own: it belongs to the thread."""
    return child_process.call(
        "core.lessons.model.set_default_device:compare", seconds=60
    )


def optimizer(device: str) -> Any:
    """What becomes of one that was built or used before the move."""
    found = model_to.optimizer_findings(device)
    after = [each for each in found if each.when == "after"]
    if any(each.error or each.weights_changed is False for each in after):
        raise WrongError("Built after the move, it does not train.", found)
    return found


def with_one_forgotten(device: str) -> dict[str, Any]:
    """A step with all four moves, and with each of them forgotten.

    Without an accelerator to the simulated one, as the page has it.
    """
    there = SIMULATED if device == "cpu" else device
    lacking: dict[str, tuple[str, ...]] = {"none": MOVES}
    lacking |= {name: tuple(m for m in MOVES if m != name) for name in MOVES}
    found = {name: model_to.attempt(there, moved) for name, moved in lacking.items()}
    if found["none"].error:
        raise WrongError(f"With all moves made: {found['none'].error}", found)
    return found


def who_can_race() -> Any:
    found = candidates(devices.describe())
    return {"all": found, "by default": default_pair(found)}
