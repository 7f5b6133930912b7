"""What is remembered: the one object that a server opens at its start.

It does not import torch, Dask or Streamlit.
"""

import tempfile
from pathlib import Path
from typing import Self

from core.store.answers import Answers
from core.store.classes import Classes
from core.store.database import Database
from core.store.measurements import Measurements
from core.store.runs import Runs
from core.store.visitors import Visitors
from core.store.writer import Writer


class Store:
    """What visitors did, in a database; safe to use from threads."""

    def __init__(self, url: str | None = None) -> None:
        """Open the database at `url`, else DATABASE_URL, else the file in data/.

        It is made and upgraded where that is needed. Raises StoreError, a sentence,
        where it can't be used, or another app uses it.
        """
        self.database = Database(url)
        self.writer = Writer(self.database)
        self.runs = Runs(self.database, self.writer)
        self.visitors = Visitors(self.database, self.writer)
        self.measurements = Measurements(self.database, self.writer)
        self.answers = Answers(self.database, self.writer)
        self.classes = Classes(self.database, self.writer)
        self._folder: tempfile.TemporaryDirectory | None = None
        self._why_passing = ""

    @classmethod
    def passing(cls, why: str) -> Self:
        """A store that forgets all when it closes, and why there is no other."""
        folder = tempfile.TemporaryDirectory(prefix="to-device-")
        store = cls(f"sqlite:///{Path(folder.name) / 'passing.sqlite'}")
        store._folder = folder
        store._why_passing = f"What is new is forgotten when the app stops. {why}"
        return store

    @property
    def problem(self) -> str:
        """What is not being kept right now, and why: a sentence; empty: all is."""
        return self.writer.problem or self._why_passing

    def is_there(self, seconds: float) -> bool:
        """Whether what is new is being kept; no longer than that is waited."""
        return not self._why_passing and self.writer.answers(seconds)

    def close(self) -> None:
        """Write what waits, and let another app have the database."""
        self.database.readers.dispose()
        self.writer.close()
        self.database.close()
        if self._folder is not None:
            self._folder.cleanup()
