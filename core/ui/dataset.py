"""Whether Fashion-MNIST is on this machine, and the task to begin with."""

from core.measure.environment import Machine


def is_here(machine: Machine | None) -> bool:
    """Whether Fashion-MNIST is usable; True if the machine isn't known yet (None)."""
    return machine is None or machine.fashion_mnist.usable


def default_task(machine: Machine | None) -> str:
    return "fashion-mnist" if is_here(machine) else "sprites"
