"""Errors, and the sentence that the person at the screen gets for each."""

import logging
import re
from typing import Any

logger = logging.getLogger(__name__)

MOST_QUOTED = 60  # characters


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
    # What it says may be a stranger's: the name of a tensor, say.
    line = f"{type(error).__name__}: {error}".partition("\n")[0]
    return quoted(line, most=300)


def quoted(text: object, most: int = MOST_QUOTED) -> str:
    """What a stranger said, to stand in a sentence: a code span of one line, cut.

    Pages show sentences as Markdown, and a backslash before each of its characters is
    not enough: links, icons and emoji are looked for once the backslashes are gone.
    """
    whole = str(text)
    shown = "".join(
        c if c.isprintable() else ascii(c)[1:-1]  # control characters, surrogates
        for c in whole[: most + 1]
    )
    if len(shown) > most:
        shown = f"{shown[: most - 1]}…"
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    inside = f" {shown} " if longest else shown or "''"
    return f"{fence}{inside}{fence}"


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
