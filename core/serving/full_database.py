"""Keep the database of a server for many from filling the disk."""

import asyncio
import logging

from core.serving.execution_policy import is_for_this_machine
from core.store.codec import StoreError
from core.store.space import make_room
from core.store.store import Store

logger = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
SHARE = 0.5  # of the disk, apart from what other programs have there
MEGABYTE = 1_000_000


def limit(store: Store, max_database_mb: int) -> float:
    """How many bytes the database may take."""
    return min(max_database_mb * MEGABYTE, SHARE * store.database.room_bytes())


def look(store: Store, max_database_mb: int) -> None:
    """Delete old rows if the database is too large. Raises StoreError.

    Where nobody else can reach the app, everything stays.
    """
    if is_for_this_machine():
        return
    most = limit(store, max_database_mb)
    if deleted := make_room(store, most):
        logger.warning(
            "the database had reached its limit of %d MB: %d old rows were deleted",
            most // MEGABYTE,
            deleted,
        )


async def watch(store: Store, max_database_mb: int) -> None:
    while True:
        # First, since the app listens nowhere yet, so nobody knows who can reach it.
        await asyncio.sleep(EVERY_SECONDS)
        try:
            await asyncio.to_thread(look, store, max_database_mb)
        except StoreError as error:
            logger.warning("could not make room in the database: %s", error)
