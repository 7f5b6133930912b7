"""What the class that is open leaves to choose: for pages to draw no more than that.

It is a convenience; what is not allowed is refused when it is submitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.classroom.rules import SHARED, Rules
from core.config import LABELS, MODELS_FOR, RECIPES
from core.measure.environment import Machine
from core.ui import format
from core.ui.server import engine, room, visitor


def rules() -> Rules:
    """Those that hold for this visitor."""
    return room().rules_for(visitor())


def hides(setting: str) -> bool:
    """Whether the control of that setting is not drawn."""
    return setting in rules().hidden


def hides_all(settings: Iterable[str]) -> bool:
    return set(settings) <= {*rules().hidden}


def holds(settings: Iterable[str]) -> bool:
    """Whether one of them is fixed, or its control hidden."""
    return not {*rules().fixed, *rules().hidden}.isdisjoint(settings)


def fixed(setting: str) -> Any | None:
    """The value that nobody changes; None: it may be chosen."""
    return rules().settings.get(setting)


def shared(setting: str) -> Any | None:
    """As `fixed`, on the pages of other jobs than training runs."""
    return fixed(setting) if setting in (*SHARED, "device") else None


def among(setting: str, options: Sequence[Any]) -> Sequence[Any]:
    """Those of the options that are allowed; all, if none of them is."""
    held = rules()
    allowed = {"model": held.models, "device": held.devices}.get(setting, ())
    value = shared(setting)
    left = [
        each
        for each in options
        if (value is None or each == value) and (not allowed or each in allowed)
    ]
    return left or options


def fitting(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a training run, changed where the class asks for others."""
    held = rules()
    found = {**given, **held.settings}
    fit = MODELS_FOR[found["task"]]
    if held.models and found.get("model", fit[0]) not in held.models:
        model = next((each for each in fit if each in held.models), fit[0])
        found |= {"model": model} | RECIPES[model] | held.settings
    if held.devices and found.get("device", "auto") not in held.devices:
        here = engine().machine()
        names = [each.device for each in here.devices] if here else []
        usable = (each for each in held.devices if each in names)
        found["device"] = next(usable, held.devices[0])
    if held.epochs and "epochs" in found:
        found["epochs"] = min(found["epochs"], held.epochs)
    return found


def at_most(setting: str, value: int) -> int:
    """The value, or as much of it as is allowed."""
    return min(value, rules().epochs or value) if setting == "epochs" else value


def machine(found: Machine) -> Machine:
    """The machine with the devices that are allowed; with all, if none of them is."""
    names = among("device", [each.device for each in found.devices])
    return replace(
        found, devices=tuple(each for each in found.devices if each.device in names)
    )


def sentence() -> str:
    """What the class asks of a run, in short: empty where it asks nothing."""
    held = rules()
    told = []
    if held.epochs:
        told.append(f"up to {format.counted(held.epochs, 'epoch')}")
    if held.runs:
        told.append(f"{format.counted(held.runs, 'run')} each")
    if held.seconds:
        told.append(f"up to {format.duration(held.seconds)} a run")
    for allowed in (held.models, held.devices):
        if allowed:
            told.append(f"{' or '.join(format.NAMES[each] for each in allowed)} only")
    fixed = [LABELS[name].lower() for name in held.fixed if not hides(name)]
    if fixed:
        told.append(f"the same {' and '.join(fixed)} for all")
    return f"Your class: {'; '.join(told)}." if told else ""
