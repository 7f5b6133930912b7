"""The labs of the Speed page: what batches, memory, loops and copies cost."""

from typing import Any


def draw(machine: dict[str, Any]) -> None:
    """All labs, one below the other."""
