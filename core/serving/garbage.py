"""Full garbage collections, each of which stops all pages, at most once a minute.

By default, Python collects fully whenever the number of objects has grown by a quarter.
With 100 people, this happened every five seconds and took 0.1 to 0.2 s.
"""

import asyncio
import gc

EVERY_SECONDS = 60.0
# Python makes a full collection after this many collections of the middle generation.
NEVER = 1_000_000_000  # so many that Python never makes one; Python's default is 10
# `watch` makes a full collection after more middle collections than this.
DUE = 10


def freeze() -> None:
    """Exempt all present objects from collections, and let only `watch` collect fully.

    Without this, each full collection would spend 0.1 s on the objects of
    pandas, Altair, and Dask.
    """
    gc.collect()
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


def collect() -> bool:
    if gc.get_count()[2] <= DUE:
        return False
    gc.collect()
    return True


async def watch() -> None:
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        collect()
