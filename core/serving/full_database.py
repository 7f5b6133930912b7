"""Keep the database of a server for many from filling the disk."""

import asyncio
import logging
import os

from core.serving.execution_policy import is_for_this_machine
from core.serving.request_source import others_came
from core.store.codec import StoreError
from core.store.space import classes_hold_most, make_room
from core.store.store import Store

logger = logging.getLogger(__name__)

EVERY_SECONDS = 60.0
SHARE = 0.5  # of the whole disk
PART = 0.05  # of the limit: a look deletes about so much
MEGABYTE = 1_000_000
FULL_OF_CLASSES = (
    "Runs of classes hold most of the room in the database, and they stay until their "
    "class is deleted. Delete classes that nobody needs, or raise MAX_DATABASE_MB."
)


def is_limited() -> bool:
    """Whether the database has a limit: others can reach the app, or a setting says so.

    A tunnel, or another proxy on this machine, shows only once somebody came through.
    """
    is_set = bool(os.environ.get("MAX_DATABASE_MB"))
    return is_set or others_came() or not is_for_this_machine()


def look(store: Store, max_database_mb: int) -> None:
    """Delete some old rows if the database is too large, or the disk nearly full.

    A disk that others fill costs no more rows than the app needs room to go on: it
    counts room in the file, which nobody else can take. Raises StoreError.
    """
    if not is_limited():
        return
    room = store.database.room()
    most = min(max_database_mb * MEGABYTE, SHARE * room.total)
    is_over = store.database.used_bytes(enough=most) > most
    wanted = PART * most if is_over else min(PART * most, room.needed - room.free)
    is_full = False
    if wanted > 0:
        deleted = make_room(store, wanted)
        if deleted.rows:
            logger.warning(
                "%s: %d old rows were deleted",
                f"the database had reached its limit of {most // MEGABYTE:.0f} MB"
                if is_over
                else "the disk is nearly full",
                deleted.rows,
            )
        is_full = deleted.bytes < wanted and classes_hold_most(store)
    if is_full and not store.is_full_of_classes:
        logger.warning("%s", FULL_OF_CLASSES)
    store.is_full_of_classes = is_full


async def watch(store: Store, max_database_mb: int) -> None:
    while True:
        # First, since the app listens nowhere yet, so nobody knows who can reach it.
        await asyncio.sleep(EVERY_SECONDS)
        try:
            await asyncio.to_thread(look, store, max_database_mb)
        except StoreError as error:
            logger.warning("could not make room in the database: %s", error)
