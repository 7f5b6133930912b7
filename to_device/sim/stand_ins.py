"""Puts objects in the place of those of torch, under their names."""

from typing import Any


def put(owner: Any, **stand_ins: Any) -> None:
    """Let a module or a class of torch have these objects under these names.

    Each object also says itself that it is torch's of this name: pickle writes what an
    object says, and then expects to find the object there.
    """
    for name, stand_in in stand_ins.items():
        is_module = not isinstance(owner, type)
        stand_in.__module__ = owner.__name__ if is_module else owner.__module__
        stand_in.__name__ = name
        stand_in.__qualname__ = name if is_module else f"{owner.__qualname__}.{name}"
        setattr(owner, name, stand_in)
