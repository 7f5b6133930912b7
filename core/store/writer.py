"""The one writer: a thread with one connection, and a queue of small writes.

Who must know that a row is kept waits for its commit; nobody else waits. While the
database is away the writes stay in memory, in order, and are made once it is back. So
every write must be one that may be made twice: a connection that breaks during a commit
does not tell whether it happened.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any

from sqlalchemy import Connection, text

from core.store.codec import StoreError
from core.store.database import LOST, Database, cause

logger = logging.getLogger(__name__)

BATCH = 100  # writes in a transaction, at most
RETRY_SECONDS = 1.0
PATIENCE_SECONDS = 5.0  # of who waits for a commit, and of close
MOST_BYTES = 256 * 2**20  # that wait in memory; some 500 runs with their checkpoints
ROW_BYTES = 1024  # what a write without large values is counted as

Work = Callable[[Connection], Any]


class Write:
    """A change that is made once the ones before it are."""

    def __init__(self, work: Work, size: int, erases: bool) -> None:
        self.work, self.size = work, size
        self.erases = erases  # what it deletes is to be gone from the disk as well
        self.ended = False  # committed, or refused by the database
        self.result: Any = None  # what `work` returned
        self.error: Exception | None = None  # why it was refused


class Writer:
    """Makes all changes of a database; safe to use from threads."""

    def __init__(self, database: Database) -> None:
        """Raises StoreError where the database can't be owned."""
        self._database = database
        self._connection: Connection | None = database.own()
        self._changed = threading.Condition()  # holds the lock of all that follows
        self._waiting: deque[Write] = deque()
        self._bytes = 0  # of those
        self._lost = 0  # writes that did not fit
        self._cause = ""  # why nothing can be written now
        self._closed = False
        self._question = Write(_ask, 0, erases=False)  # see `answers`
        self._question.ended = True
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """What is not being kept, and why: a sentence; empty while all is well."""
        with self._changed:
            if not self._cause:
                return ""
            count = len(self._waiting) - (not self._question.ended)
            found = (
                f"Runs are not being kept right now: {self._cause}. Training goes on; "
                f"what is new waits in memory ({count} change{'s' * (count != 1)}) and "
                "will be kept once that is fixed."
            )
            if self._lost:
                found += f" {self._lost} more did not fit and are lost."
            return found

    def put(self, work: Work, size: int = 0, erases: bool = False) -> Write:
        """Queue a write, of so many bytes; nobody waits for it."""
        write = Write(work, size + ROW_BYTES, erases)
        with self._changed:
            if self._closed or self._bytes + write.size > MOST_BYTES:
                self._lost += 1
            else:
                self._waiting.append(write)
                self._bytes += write.size
                self._changed.notify_all()
        return write

    def write(self, work: Work, size: int = 0, erases: bool = False) -> Write:
        """Queue a write and wait for it; raises what `wait` does."""
        write = self.put(work, size, erases)
        self.wait(write)
        return write

    def wait(self, write: Write) -> bool:
        """Wait until a write is committed; whether it is.

        Where that can't be now it stays queued, and has not `ended`: see `problem`.
        Raises what the database has against it.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: write.ended or self._cause or self._closed, PATIENCE_SECONDS
            )
        if write.error is not None:
            raise write.error
        return write.ended

    def now(self, work: Work, erases: bool = False) -> Any:
        """Make a write, and answer what `work` returns.

        Raises StoreError where it has to wait until the database is back.
        """
        write = self.write(work, erases=erases)
        if not write.ended:
            raise StoreError("The database is away; this waits until it is back.")
        return write.result

    def answers(self, seconds: float) -> bool:
        """Whether the database takes changes now; no longer than that is waited.

        It is asked by a change of nothing, in its turn; one question at a time, so that
        a database that hangs is not asked again and again.
        """
        with self._changed:
            question = self._question
            if question.ended:
                question = self._question = Write(_ask, 0, erases=False)
                self._waiting.append(question)
                self._changed.notify_all()
            self._changed.wait_for(lambda: question.ended or self._cause, seconds)
            return question.ended and not self._cause

    def flush(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait until all that was put so far is written; whether it is."""
        with self._changed:
            last = self._waiting[-1] if self._waiting else None
            return self._changed.wait_for(lambda: not last or last.ended, seconds)

    def close(self) -> None:
        """Write what waits, if that can be, and end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(PATIENCE_SECONDS)
        if self._waiting:
            logger.error(
                "%d changes were not kept: %s", len(self._waiting), self._cause
            )

    # In the thread

    def _run(self) -> None:
        single = 0  # so many writes to come are made one by one
        while batch := self._next(1 if single else BATCH):
            fresh = self._connection is None
            try:
                self._commit(batch)
            except Exception as error:
                self._drop_connection()
                if why := cause(error):
                    # An old connection may just have been cut; the database is there.
                    if (why == LOST and not fresh) or self._pause(why):
                        continue
                    break
                if len(batch) > 1:  # one of them is wrong
                    single = len(batch)
                    continue
                logger.exception("a change can't be kept")
                batch[0].error = error
            single = max(0, single - 1)
            self._end(batch)
        self._drop_connection()

    def _next(self, most: int) -> list[Write]:
        """The next to be written, which stay queued until they are; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return list(islice(self._waiting, most))

    def _commit(self, batch: list[Write]) -> None:
        self._database.check()
        if self._connection is None:
            self._connection = self._database.connect()
        with self._connection.begin():
            for write in batch:
                write.result = write.work(self._connection)
        if any(write.erases for write in batch):
            self._database.erase(self._connection)

    def _drop_connection(self) -> None:
        """The next try has a new one."""
        if self._connection is not None:
            try:
                self._connection.close()
            except Exception:  # it is gone already
                logger.debug("the connection was closed by the other side")
            self._connection = None

    def _pause(self, why: str) -> bool:
        """Tell why nothing is written, and wait for the next try; False: no more."""
        with self._changed:
            if why != self._cause:
                logger.warning("nothing is kept right now: %s", why)
            self._cause = why
            self._changed.notify_all()  # nobody need wait for a commit now
            return not self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)

    def _end(self, batch: list[Write]) -> None:
        with self._changed:
            for write in batch:
                self._waiting.popleft()
                self._bytes -= write.size
                write.ended = True
            if self._cause:
                logger.warning("kept again; %d changes were lost", self._lost)
            self._cause, self._lost = "", 0
            self._changed.notify_all()


def _ask(connection: Connection) -> None:
    """Postgres hears of a transaction only once something is said in it."""
    connection.execute(text("SELECT 1"))
