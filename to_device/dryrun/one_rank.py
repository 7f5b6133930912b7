"""torch.distributed in a world of one: what the only rank of a torchrun would do.

No other rank sends anything, so a collective's outputs are its inputs. NCCL's rule
holds: it takes no tensors of the CPU.
"""

import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d
from torch.futures import Future
from torch.utils._pytree import tree_leaves

from to_device.names import SIMULATED
from to_device.sim.stand_ins import put

BACKEND = "one_rank"  # the name under which PyTorch knows the group
ENVIRONMENT = {  # what torchrun tells the only process that it starts
    **dict.fromkeys(("RANK", "LOCAL_RANK", "GROUP_RANK"), "0"),
    **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), "1"),
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}
# Collectives that change their tensors, and those that fill others; the names of torch
# 2.10 to 2.15.
IN_PLACE = "allreduce allreduce_coalesced broadcast reduce"
FILLING = """
    allgather gather reduce_scatter scatter alltoall alltoall_base all_to_all_single
    _allgather_base all_gather_single _reduce_scatter_base reduce_scatter_single
    allgather_into_tensor_coalesced all_gather_single_coalesced
    reduce_scatter_tensor_coalesced reduce_scatter_single_coalesced
"""

backend = "nccl"  # what the script asked for
was_used = False  # whether the script has made the group


def _done(result: Any) -> Any:
    """The handle of a collective that has finished."""
    future: Any = Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


def _check(tensors: Any) -> None:
    if "nccl" in backend and "gloo" not in backend:
        for tensor in tree_leaves(tensors):
            if tensor.is_cpu:
                raise RuntimeError("No backend type associated with device type cpu")


def _keep(_: Any, tensors: Any, *__: Any, **___: Any) -> Any:
    _check(tensors)
    return _done(tensors)


def _fill(_: Any, outputs: Any, inputs: Any, *__: Any, **___: Any) -> Any:
    _check((outputs, inputs))
    pairs = zip(tree_leaves(outputs), tree_leaves(inputs), strict=True)
    with torch.no_grad():
        for output, given in pairs:
            output.view(-1).copy_(given.reshape(-1))
    return _done(outputs)


class OneRank(dist.ProcessGroup):
    """A process group with this process alone."""

    def getBackendName(self) -> str:  # noqa: N802 - PyTorch's name
        return backend

    @property
    def group_name(self) -> Any:
        return distributed_c10d._world.pg_names[self]

    def barrier(self, *_: Any, **__: Any) -> Any:
        return _done(None)


for name in IN_PLACE.split():
    setattr(OneRank, name, _keep)
for name in FILLING.split():
    setattr(OneRank, name, _fill)


def init_process_group(
    refuse: Callable[[str], Any], given: Any = None, *_: Any, **options: Any
) -> None:
    """Replaces torch.distributed.init_process_group.

    `refuse` ends the run if the world has more than one rank.
    """
    global backend, was_used
    size = options.get("world_size")
    size = int(os.environ.get("WORLD_SIZE", 1)) if size in (None, -1) else int(size)
    if size != 1:
        refuse(f"several processes (the world has {size})")
    backend = str(given or "cpu:gloo,cuda:nccl").lower()
    was_used = True
    if BACKEND not in dist.Backend.backend_list:
        devices = ["cpu", "cuda", SIMULATED]
        dist.Backend.register_backend(
            BACKEND, lambda *args: OneRank(args[1], args[2]), devices=devices
        )
    for key, value in ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    _init(BACKEND, rank=0, world_size=1, store=dist.HashStore())


_init = dist.init_process_group


def install(refuse: Callable[[str], Any]) -> None:
    def init(*args: Any, **options: Any) -> None:
        init_process_group(refuse, *args, **options)

    for module in (dist, distributed_c10d):
        put(
            module,
            init_process_group=init,
            is_nccl_available=lambda: True,
            get_backend=lambda _=None: backend.rpartition(":")[2],
        )
