"""The simulated device's queue: the host can go on while the device works.

This is an experiment. Usually, the simulated device has done an operation when
the call returns, and waits are only counted. Within `working()`, an operation
goes into a queue, as on a GPU: the call returns at once, a thread does the
work in order, and the host waits where it would wait for a GPU. An error in a
queued operation is raised at the next wait.

The size of a result has to be known before its values are. To learn the size, PyTorch
runs the operation on its device "meta", whose tensors have sizes but no values. Some
operations run only when the queue is empty, even where a GPU would queue them: those
with a size that depends on values, those that draw random numbers, and those that read
a tensor of the host.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

Work = Callable[[], object]

_queue: queue.SimpleQueue[Work | None] | None = None  # None: work is done at once
_failed: list[Exception] = []
_AT_ONCE = {torch.Tag.inplace_view, torch.Tag.nondeterministic_seeded}


@contextmanager
def working() -> Iterator[None]:
    """Within the block, queue the device's work. When the block ends, all is done."""
    global _queue
    _queue = queue.SimpleQueue()
    thread = threading.Thread(target=_work, args=(_queue, torch.get_num_threads()))
    thread.start()
    try:
        yield
        finish()
    finally:
        _queue.put(None)
        thread.join()
        _queue = None
        _failed.clear()


def _work(waiting: queue.SimpleQueue[Work | None], cpu_threads: int) -> None:
    torch.set_num_threads(cpu_threads)  # torch keeps this number for each thread
    with torch.no_grad():
        while work := waiting.get():
            try:
                work()
            except Exception as error:
                _failed.append(error)


def put(work: Work) -> None:
    """Do some work after all the work in the queue; without a queue, do it at once."""
    if _queue is None:
        work()
    else:
        _queue.put(work)


def finish() -> None:
    """Wait until the queue is empty. Raises the first error of its work."""
    if _queue is None:
        return
    done = threading.Event()
    _queue.put(done.set)
    done.wait()
    if _failed:
        error = _failed[0]
        _failed.clear()
        raise error


def run(op: Any, args: list[Any], kwargs: dict[str, Any], *, reads_host: bool) -> Any:
    """The result of an operation; within `working()`, it gets values later.

    Usually, the CPU tensors among the arguments lie in the device's memory.
    With `reads_host`, some are the program's own CPU tensors. The operation
    then waits for the queue, and runs before the program can change them.
    """
    if _queue is None or not any(isinstance(x, Tensor) for x in tree_leaves(args)):
        return op(*args, **kwargs)
    on_meta = partial(tree_map_only, Tensor, partial(torch.empty_like, device="meta"))
    sizes = NotImplemented
    # "meta" may not know the operation or the size, or may word an error differently.
    with suppress(Exception):
        if not reads_host and _has_known_size(op):
            sizes = op(*on_meta(args), **on_meta(kwargs))
    if sizes is NotImplemented:
        finish()
        return op(*args, **kwargs)
    if op._schema.is_mutable:  # in place
        put(partial(op, *args, **kwargs))
        return args[0] if op._schema.returns else None
    result = tree_map_only(Tensor, partial(torch.empty_like, device="cpu"), sizes)
    put(partial(_fill, result, partial(op, *args, **kwargs)))
    return result


def _has_known_size(op: Any) -> bool:
    """Whether the size of an operation's result is known before the operation runs.

    The size is known if the results are new, or arguments that are changed in place.
    """
    schema = op._schema
    takes_out = any(a.kwarg_only and a.alias_info for a in schema.arguments)
    is_view = any(r.alias_info and not r.alias_info.is_write for r in schema.returns)
    return not (takes_out or is_view or _AT_ONCE & set(op.tags))


def _fill(result: Any, compute: Work) -> None:
    values = tree_leaves(compute())
    for tensor, value in zip(tree_leaves(result), values, strict=True):
        if isinstance(tensor, Tensor):
            tensor.copy_(value)
