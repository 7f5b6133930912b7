"""The simulated device's random numbers, drawn by a generator of the CPU."""

import weakref
from collections.abc import Callable
from typing import Any

import torch

from to_device.names import SIMULATED

WORDS = "Expected a '{}' device type for generator but found '{}'"
_ours: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
default: Any = None  # made when the device is installed


class Generator(torch._C.Generator):
    """A torch.Generator that can also be made for the simulated device."""

    def __new__(cls, device: Any = "cpu") -> "Generator":
        is_ours = torch.device(device).type == SIMULATED
        device = torch.device("cpu") if is_ours else device
        generator: Any = super().__new__(cls, device)  # type: ignore[call-arg]
        if is_ours:
            _ours[generator._cdata] = generator
        return generator

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        is_ours = self._cdata in _ours  # type: ignore[attr-defined]
        return torch.device(SIMULATED, 0) if is_ours else super().device


def use(place: int, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Let an operation draw from the given generator, or else from `default`.

    `place` is the generator's position among the arguments. No positional argument may
    come after the generator, since the generator is removed there and passed by name.
    Raises RuntimeError for the generator of another device.
    """
    generator = args.pop(place) if place < len(args) else kwargs.get("generator")
    if generator is not None and generator._cdata not in _ours:
        raise RuntimeError(WORDS.format(SIMULATED, "cpu"))
    kwargs["generator"] = generator or default


def refusing(kernel: Any, place: int) -> Callable:
    """Make a random operation's CPU kernel refuse the device's generators."""

    def run(keys: Any, *args: Any, **kwargs: Any) -> Any:
        given: Any = args[place] if place < len(args) else kwargs.get("generator")
        # The device runs this kernel, too, but with torch functions disabled.
        by_host = given is not None and torch._C._is_torch_function_enabled()
        if by_host and given._cdata in _ours:
            raise RuntimeError(WORDS.format("cpu", SIMULATED))
        return kernel.call_boxed(keys, *args, **kwargs)

    return run
