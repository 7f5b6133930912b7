"""What is remembered: the one object that a server opens at its start.

It does not import torch, Dask or Streamlit.
"""

from core.store.database import Database
from core.store.measurements import Measurements
from core.store.runs import Runs
from core.store.visitors import Visitors
from core.store.writer import Writer


class Store:
    """Runs, visitors and measurements in a database; safe to use from threads."""

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

    @property
    def problem(self) -> str:
        """What is not being kept right now, and why: a sentence; empty: all is."""
        return self.writer.problem

    def close(self) -> None:
        """Write what waits, and let another app have the database."""
        self.database.readers.dispose()
        self.writer.close()
        self.database.close()
