"""What the pages about ranks share: their colors, and why they are on the CPU."""

from core.measure.environment import Machine
from core.ui.charts import Palette
from core.words import Words

words = Words(__file__)


def colors_of(colors: Palette, ranks: int) -> list[str]:
    """A color for each rank; none is a device's."""
    return list(colors.runs[:ranks])


def why_on_cpu(machine: Machine) -> str:
    """A sentence for a machine with an accelerator, empty for others.

    A worker sees one NVIDIA GPU, see core.jobs.cluster, but all GPUs of AMD.
    """
    return words.table("on_cpu").get(machine.devices[0].backend, words("no_nccl"))
