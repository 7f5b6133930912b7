"""Run a function on several ranks, each of which is a process, as torchrun does.

Environment variables tell each process which rank it is and where to meet the others.
If a rank dies, all ranks end, since the others would wait for its gradients in vain.
"""

import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from math import inf
from multiprocessing import connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from core import devices
from core.jobs.child_process import Child, ChildDiedError, returned_by
from core.jobs.job import Outcome, outcome_of
from core.measure.environment import Environment
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError

SECONDS = 3600.0  # the time limit of a rank's process
MOST_SILENT = timedelta(seconds=30)  # how long a rank waits for the others
LAST_WORDS_SECONDS = 2.0  # after one rank has failed, how long to wait for the others
PLACE = "RANKS_MEET_AT"  # the environment variable that names the file where ranks meet
SOURCE = re.compile(r"\[/\S+\] ")  # the place in torch's code that an error names
LOOPBACK = {"darwin": "lo0", "linux": "lo"}


def run(
    address: str,
    count: int,
    *arguments: Any,
    backend: str,
    watch: Watch = UNWATCHED,
    reports: Any = None,
) -> tuple[Any, ...]:
    """Call the function at `address` on `count` ranks; return the value of each rank.

    The ranks' reports, of the type `reports`, are passed on to `watch`. Raises
    ExplainedError if a rank fails or dies, and CancelledError if the job is canceled.
    In any case, all ranks have ended afterwards.
    """
    with ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        place = Path(stack.enter_context(folder), "ranks").as_uri()
        children = []
        for rank in range(count):
            settings = (rank, count, place, backend, address, arguments)
            child = Child(
                "core.lessons.scale.ranks:join",
                settings,
                SECONDS,
                returns=returned_by(address),
                reports=reports,
            )
            children.append(child)
            stack.callback(children[-1].end)
        return _values(children, watch)


def join(
    rank: int,
    count: int,
    place: str,
    backend: str,
    address: str,
    arguments: tuple[Any, ...],
    watch: Watch,
) -> Any:
    """Set what torchrun sets in a rank's process, then call the function.

    The ranks meet through a file instead of at MASTER_ADDR and MASTER_PORT, so
    no other machine can reach them. OMP_NUM_THREADS is left out, since our
    child processes have one thread anyway.
    """
    os.environ |= {
        "RANK": str(rank),  # among all ranks
        "LOCAL_RANK": str(rank),  # among the ranks of this machine
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        PLACE: place,
    }
    if sys.platform in LOOPBACK:
        os.environ["GLOO_SOCKET_IFNAME"] = LOOPBACK[sys.platform]
    meet(backend)
    value = outcome_of(address, arguments, watch).get()
    dist.destroy_process_group()
    return value


def meet(backend: str = "") -> None:
    """Join the process group and wait for the other ranks.

    By default, `backend_for` chooses the backend for this machine's ranks.
    """
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    backend = backend or backend_for(int(os.environ["LOCAL_WORLD_SIZE"]))
    place = os.environ.get(PLACE, "env://")
    if backend == "nccl":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(
        backend, place, timeout=MOST_SILENT, rank=rank, world_size=count
    )


def backend_for(count: int) -> str:
    """ "nccl" if each of `count` ranks can have a GPU, else "gloo", on the CPU.

    Also "gloo" where torch was built without NCCL, as on Windows.
    """
    has_gpus = torch.cuda.device_count() >= count
    return "nccl" if has_gpus and dist.is_nccl_available() else "gloo"


def means(backend: str) -> tuple[str, Environment]:
    """The backend, and the environment of a rank with this backend."""
    kind = "cuda" if backend == "nccl" else "cpu"
    here = devices.environment(torch.device(kind))
    return backend, replace(here, threads=1)  # each rank has one thread


def device() -> torch.device:
    if dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _values(children: Sequence[Child], watch: Watch) -> tuple[Any, ...]:
    """The children's values, by rank; raises ExplainedError if a child fails."""
    outcomes: dict[int, Outcome] = {}
    dead: dict[int, str] = {}  # by rank, how its process ended
    deadline = inf  # the other ranks' time limit, after one has failed
    waiting = {child.pipe: rank for rank, child in enumerate(children)}
    while waiting and time.monotonic() < deadline:
        watch.check()
        for pipe in connection.wait(list(waiting), 0.1):
            rank = waiting[pipe]  # type: ignore[index]
            try:
                message = children[rank].receive(MOST_SILENT.total_seconds())
            except ChildDiedError as error:
                dead[rank] = str(error)
            else:
                if not isinstance(message, Outcome):
                    watch.report(message)
                    continue
                outcomes[rank] = message
            del waiting[pipe]  # type: ignore[arg-type]
            if rank in dead or outcomes[rank].status == "failed":
                deadline = min(deadline, time.monotonic() + LAST_WORDS_SECONDS)
    if deadline < inf:
        raise ExplainedError(_why(len(children), dead, outcomes))
    return tuple(outcomes[rank].value for rank in range(len(children)))


def _why(count: int, dead: dict[int, str], outcomes: dict[int, Outcome]) -> str:
    """Sentences on why there is no result: which rank died, or which failed first."""
    failures = (item for item in outcomes.items() if item[1].status == "failed")
    rank, outcome = next(failures, (0, Outcome("failed")))
    if not dead:
        return f"Rank {rank} of {count} could not continue: {outcome.message}"
    dead_rank, how = next(iter(dead.items()))
    text = f"Rank {dead_rank} of {count} died. {how}"
    if outcome.message:
        error = SOURCE.sub("", outcome.message.strip("`").partition(". ")[0])
        text += f" Rank {rank} waited for rank {dead_rank}'s gradients and got this "
        text += f"error: `{error}`."
    return f"{text} So the run stopped on all ranks."
