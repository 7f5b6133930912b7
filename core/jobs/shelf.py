"""Bytes that are put aside: kept by the server, but not in its memory.

They lie in a temporary database of SQLite, a file that nobody else sees and that goes
with the process, however it ends.
"""

import logging
import sqlite3
import threading
from dataclasses import dataclass

from core.errors import ExplainedError

logger = logging.getLogger(__name__)

GONE = "The checkpoint of that run is no longer kept. Choose another run."


@dataclass(frozen=True)
class Stored:
    """What stands for bytes on the shelf, in the arguments of a job for example."""

    name: str


class Shelf:
    """Bytes by their names; safe to use from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Without a name the database is temporary, and its cache has 2 MB. Nothing of
        # it has to survive a crash, so its journal need not be a file.
        self._database = sqlite3.connect("", check_same_thread=False)
        self._database.isolation_level = None
        self._database.execute("PRAGMA journal_mode = MEMORY")
        self._database.execute("CREATE TABLE shelf (name TEXT PRIMARY KEY, bytes BLOB)")
        self._without_room: dict[str, bytes] = {}  # what the disk did not take

    def put(self, name: str, content: bytes) -> None:
        """Put bytes aside; where the disk is full they stay in memory."""
        with self._lock:
            try:
                self._database.execute(
                    "INSERT OR REPLACE INTO shelf VALUES (?, ?)", (name, content)
                )
            except sqlite3.Error:
                logger.warning("a checkpoint stays in memory", exc_info=True)
                self._without_room[name] = content

    def get(self, stored: Stored) -> bytes:
        """The bytes; ExplainedError where they are no longer kept."""
        with self._lock:
            if stored.name in self._without_room:
                return self._without_room[stored.name]
            found = self._database.execute(
                "SELECT bytes FROM shelf WHERE name = ?", (stored.name,)
            ).fetchone()
        if found is None:
            raise ExplainedError(GONE)
        return found[0]

    def remove(self, name: str) -> None:
        """Make room, if there is something of that name."""
        with self._lock:
            self._without_room.pop(name, None)
            self._database.execute("DELETE FROM shelf WHERE name = ?", (name,))
