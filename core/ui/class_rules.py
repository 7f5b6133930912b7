"""The open class's rules, so that pages offer only settings that the rules allow.

The server checks the rules again when a job is submitted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.classroom.rules import SHARED, Rules
from core.config import CRITERIA_FOR, MODELS_FOR, RECIPES
from core.measure.environment import Machine
from core.ui.server import engine, room, visitor
from to_device.names import SIMULATED


def rules() -> Rules:
    return room().rules_for(visitor())


def hides(setting: str) -> bool:
    return setting in rules().hidden


def holds(settings: Iterable[str]) -> bool:
    """Whether the class fixes one of the settings, or hides its control."""
    return not {*rules().fixed, *rules().hidden}.isdisjoint(settings)


def fixed(setting: str) -> Any | None:
    """The value that the class sets for this setting; None if people may choose."""
    return rules().settings.get(setting)


def among(setting: str, options: Sequence[Any]) -> Sequence[Any]:
    """The options that the class allows, or all options if it allows none of them."""
    allows, with_fixed = rules().allows, setting in SHARED
    return [o for o in options if allows(setting, o, with_fixed=with_fixed)] or options


def fitting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training run's settings, changed where the class doesn't allow them."""
    class_rules = rules()
    settings = {**settings, **class_rules.settings}
    models, criteria = (of[settings["task"]] for of in (MODELS_FOR, CRITERIA_FOR))
    if settings.get("criterion", criteria[0]) not in criteria:
        settings["criterion"] = criteria[0]
    allowed = among("model", models)
    if settings.get("model", models[0]) not in allowed:
        settings |= RECIPES[allowed[0]] | class_rules.settings | {"model": allowed[0]}
    if not class_rules.allows("device", settings.get("device", "auto")):
        machine = engine().machine()
        names = [device.device for device in machine.devices] if machine else []
        usable = (name for name in class_rules.devices if name in names)
        settings["device"] = next(usable, class_rules.devices[0])
    if "epochs" in settings:
        settings["epochs"] = at_most("epochs", settings["epochs"])
    return settings


def at_most(setting: str, value: int) -> int:
    return min(value, rules().epochs or value) if setting == "epochs" else value


def limited(label: str, setting: str) -> str:
    """The label with the class's limit: "Epochs (up to 5)"."""
    most = rules().epochs if setting == "epochs" else None
    return f"{label} (up to {most})" if most else label


def machine(whole: Machine) -> Machine:
    """The machine with only those of its devices that the class allows.

    If the class allows none of them, all stay.
    """
    names = among("device", [device.device for device in whole.devices])
    simulates = whole.simulates and rules().allows("device", SIMULATED)
    devices = tuple(d for d in whole.devices if d.device in names)
    return replace(whole, devices=devices, simulates=simulates)
