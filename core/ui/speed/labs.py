"""The labs of the Speed page: what batches, memory, loops and copies cost."""

from typing import Any

from core.ui.speed import copies, loader, memory, vectorize


def draw(machine: dict[str, Any]) -> None:
    """All labs, one below the other."""
    loader.draw(machine)
    memory.draw(machine)
    vectorize.draw(machine)
    copies.draw(machine)
