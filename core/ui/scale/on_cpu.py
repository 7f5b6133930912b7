"""Why ranks compute on the CPU of a machine that has a GPU, in words.

A worker sees one NVIDIA GPU, see core.jobs.cluster, but all that AMD made.
"""

from core.measure.environment import Machine

WHY = {
    "CPU": "",  # each lab has a sentence of its own for it
    "CUDA": "Here all ranks run on the CPU: each would need its own GPU, and the app "
    "gives a run only one.",
    "ROCm": "Without a GPU for each rank, all of them run on the CPU.",
}
NO_NCCL = (
    "Here all ranks run on the CPU: NCCL, which exchanges gradients between GPUs, "
    "needs GPUs from NVIDIA or AMD."
)
INSTEAD = (
    " On a machine with two GPUs or more, the `torchrun` line below gives each rank "
    "its own, with NCCL."
)


def why(machine: Machine) -> str:
    """A sentence for a machine with an accelerator."""
    return WHY.get(machine.devices[0].backend, NO_NCCL)


def instead(machine: Machine) -> str:
    """How ranks of this machine would have a GPU each, if it has as many."""
    return INSTEAD if machine.devices[0].backend in ("CUDA", "ROCm") else ""
