"""The labs of the Speed page: what batches, memory, loops and copies cost."""

from typing import Any

from core.ui import loader_lab, memory_lab, small_copies, vectorize


def draw(machine: dict[str, Any]) -> None:
    """All labs, one below the other."""
    loader_lab.draw(machine)
    memory_lab.draw(machine)
    vectorize.draw(machine)
    small_copies.draw(machine)
