"""Launchers in front of a script, such as torchrun: it runs as their one rank."""

import importlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from to_device.errors import ExplainedError

PYTHONS = ("python", "python3")
# Each launcher's own parser knows which of its options have values: the module, and the
# function that makes the parser.
PARSERS = {
    "torchrun": ("torch.distributed.run", "get_args_parser"),
    "accelerate launch": ("accelerate.commands.launch", "launch_command_parser"),
}
MODULES = {  # as `python -m` knows them
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate launch",
}


class Launch(NamedTuple):
    script: list[str]  # a script or "-m" and a module, then its arguments
    environment: dict[str, str]  # what the launcher sets for its rank


def read(command: Sequence[str]) -> Launch | None:
    """Take off the launcher in front of a command; None if there is none.

    Raises ExplainedError if the launcher isn't installed or refuses its options.
    """
    rest = list(command)
    name = rest.pop(0) if rest else ""
    if name in PYTHONS and rest[:1] != ["-m"]:
        return Launch(rest, {})
    if name in PYTHONS and len(rest) > 1:
        if rest[1] not in MODULES:
            return Launch(rest, {})
        name, rest = MODULES[rest[1]], rest[2:]
    elif name == "accelerate" and rest[:1] == ["launch"]:
        name, rest = "accelerate launch", rest[1:]
    if name not in PARSERS:
        return None
    module, function = PARSERS[name]
    try:
        parser = getattr(importlib.import_module(module), function)()
        ours: Any = parser.parse_args(rest)
    except ImportError as error:
        raise ExplainedError(f"{name} isn't installed: {error}") from None
    except SystemExit:
        raise ExplainedError(f"{name} refuses these options.") from None
    script = [ours.training_script]
    if getattr(ours, "module", False):
        script = ["-m", *script]
    environment = {"WORLD_SIZE": "1", "RANK": "0", "LOCAL_RANK": "0"}
    environment |= {"LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    environment["MASTER_PORT"] = os.environ.get("MASTER_PORT", "29500")
    if precision := getattr(ours, "mixed_precision", None):
        environment["ACCELERATE_MIXED_PRECISION"] = precision
    return Launch([*script, *ours.training_script_args], environment)
