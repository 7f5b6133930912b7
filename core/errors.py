"""Errors, and the sentence that the person at the screen gets for each."""

import logging
from typing import Any

logger = logging.getLogger(__name__)


class ExplainedError(Exception):
    """What went wrong and what to do about it, ready to be shown as it is."""


class CancelledError(Exception):
    """The person who started this run has cancelled it."""


def explain(error: Exception, arguments: tuple[Any, ...] = ()) -> str:
    """One sentence on what went wrong, and what to try."""
    if isinstance(error, ExplainedError):
        return str(error)
    if is_out_of_memory(error):
        # The first argument of a training run is its configuration.
        return out_of_memory(getattr(next(iter(arguments), None), "batch_size", None))
    logger.exception("a job failed")
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the host had no memory left."""
    import torch

    # The host's allocator has no exception class of its own.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    )


def out_of_memory(batch_size: int | None) -> str:
    """What to say and to try when memory ran out at a batch size."""
    if batch_size is None or batch_size <= 16:
        return "The memory ran out. Close other programs and try again."
    return (
        f"The memory ran out at batch size {batch_size:,}. "
        f"Try {max(16, batch_size // 4):,}: activations grow with the batch."
    )
