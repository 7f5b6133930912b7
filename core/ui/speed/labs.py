"""The labs of the Speed page: what batches, memory, loops and copies cost."""

from core.measure.environment import Machine
from core.ui.speed import copies, loader, memory, vectorize


def draw(machine: Machine) -> None:
    """All labs, one below the other."""
    loader.draw(machine)
    memory.draw(machine)
    vectorize.draw(machine)
    copies.draw(machine)
