"""Python's garbage collector, so that visitors wait for it as little as possible.

A full collection stops every page and look meanwhile. Left alone, Python makes one
whenever a quarter more lives: with 100 people one in five seconds, of 0.1 to 0.2 s.
"""

import asyncio
import gc

EVERY_SECONDS = 60.0
NEVER = 1_000_000_000  # collections of the middle generation between two full ones


def spare_what_lives() -> None:
    """Look no more through all that was imported; full collections are left to `watch`.

    With what pandas, Altair and Dask have made, one takes 0.1 s.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


def collect(due: int = 10) -> bool:
    """A full collection, if the middle generation has had more than so many since.

    Ten is when Python would think of one. Answers whether there was one.
    """
    if gc.get_count()[2] <= due:
        return False
    gc.collect()
    return True


async def watch() -> None:
    """Collect now and then, where there are visitors."""
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        collect()
