"""How a job's error becomes a sentence for people."""

import logging
from typing import Any

from to_device.errors import ExplainedError, quoted

logger = logging.getLogger(__name__)


class CancelledError(Exception):
    """Raised in a job that somebody canceled, to end the job."""


def explain(error: Exception, arguments: tuple[Any, ...] = ()) -> str:
    if isinstance(error, ExplainedError):
        return str(error)
    if is_out_of_memory(error):
        # The first argument of a training run is its configuration.
        size = getattr(next(iter(arguments), None), "batch_size", None)
        if size is None or size <= 16:
            return "There was not enough memory. Close other programs and try again."
        return (
            f"There was not enough memory for batch size {size:,}. "
            f"Try {max(16, size // 4):,}: activations grow with the batch."
        )
    logger.exception("a job failed")
    if "device-side assert" in str(error):
        return (
            "A label or an index was out of range, so the GPU stopped: `device-side "
            "assert triggered`. A new worker is starting. Correct the label or the "
            "index, and try again."
        )
    # The message may contain a stranger's text, such as a tensor's name in an upload.
    line = f"{type(error).__name__}: {error}".partition("\n")[0]
    return quoted(line, most=300)


def is_out_of_memory(error: Exception) -> bool:
    import torch

    # When the host's memory is full, torch raises a plain RuntimeError.
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    )
