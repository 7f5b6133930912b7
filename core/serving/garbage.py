"""Garbage collection when it suits us, since a full collection stops every page.

By default, Python makes one whenever there are a quarter more objects: with 100 people,
every five seconds, for 0.1 to 0.2 s.
"""

import asyncio
import gc

EVERY_SECONDS = 60.0
NEVER = 1_000_000_000  # collections of the middle generation between two full ones
DUE = 10  # collections after which Python would make a full one


def freeze() -> None:
    """Exempt everything imported so far, and leave full collections to `watch`.

    Going through the objects of pandas, Altair, and Dask takes 0.1 s.
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
