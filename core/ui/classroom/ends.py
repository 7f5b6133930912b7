"""Classes are deleted on the day that their teachers have named."""

import asyncio
import logging

from core.store.codec import StoreError
from core.ui.server import engine, room

logger = logging.getLogger(__name__)

LOOK_SECONDS = 3600.0


async def watch() -> None:
    """Look at once, since the server may have been off that day, and then each hour."""
    while True:
        try:
            await asyncio.to_thread(room().delete_ended, engine().forget)
        except StoreError as error:
            logger.warning("no class was deleted: %s", error)
        await asyncio.sleep(LOOK_SECONDS)
