"""The store: runs, visitors, classes, and measurements in a database."""

import tempfile
from pathlib import Path
from typing import Self

from core.store.classes import Classes
from core.store.database import Database, words
from core.store.measurements import Measurements
from core.store.runs import Runs
from core.store.visitors import Answers, Visitors
from core.store.writer import Writer


class Store:
    def __init__(self, url: str | None = None) -> None:
        """Open the database at `url`, else DATABASE_URL, else the file in data/.

        Makes or upgrades the database first. Raises StoreError if the database can't be
        used, or another app uses it.
        """
        self.database = Database(url)
        self.writer = Writer(self.database)
        self.runs = Runs(self.database, self.writer)
        self.visitors = Visitors(self.database, self.writer)
        self.measurements = Measurements(self.database, self.writer)
        self.answers = Answers(self.database, self.writer)
        self.classes = Classes(self.database, self.writer)
        self.is_full_of_classes = False  # as core.serving.full_database saw it last
        self._folder: tempfile.TemporaryDirectory | None = None
        self._why_passing = ""

    @classmethod
    def temporary(cls, why: str) -> Self:
        """A store that forgets everything when it closes.

        The app uses this store if its database is unusable. `why` is a
        sentence on what is wrong with the database.
        """
        folder = tempfile.TemporaryDirectory(prefix="to-device-")
        store = cls(f"sqlite:///{Path(folder.name) / 'temporary.sqlite'}")
        store._folder = folder
        store._why_passing = (
            f"New data will be lost when the app stops. {why} "
            "After that is fixed, start the app again."
        )
        return store

    @property
    def problem(self) -> str:
        """A sentence on why data is not being saved or read; "" if all data is."""
        unread = words("unreadable") if self.database.hangs else ""
        return self.writer.problem or unread or self._why_passing

    def is_there(self, seconds: float) -> bool:
        """Whether the database takes changes; waits at most `seconds` to know."""
        return not self._why_passing and self.writer.answers(seconds)

    def close(self) -> None:
        """Finish waiting writes, and let another app own the database."""
        self.database.readers.dispose()
        self.writer.close()
        self.database.close()
        if self._folder is not None:
            self._folder.cleanup()
