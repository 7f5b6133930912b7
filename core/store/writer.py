"""The database's only writer: a thread, its connection, a queue of writes.

Callers that need durability wait for the commit; others don't. While the database can't
be reached, the writes stay in memory, in order, and are made once it responds again.
Every write must have the same effect if it is made twice: a connection that breaks
during a commit does not tell whether the commit happened.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Select, text
from sqlalchemy.orm import Session

from core.store.codec import StoreError
from core.store.database import LOST, Database, cause, words

logger = logging.getLogger(__name__)

BATCH = 100  # writes in a transaction, at most
RETRY_SECONDS = 1.0
PATIENCE_SECONDS = 5.0  # the longest wait for a commit, and for the thread in `close`
MOST_BYTES = 256 * 2**20  # limit of the queue: some 500 runs with checkpoints
ROW_BYTES = 1024  # the assumed size of a write without its large values

Work = Callable[[Session], Any]


@dataclass(eq=False)
class Write:
    """A change of the database: in the queue, committed, or refused."""

    work: Work
    size: int = 0  # bytes in memory
    erases: bool = False  # whether the rows that `work` deletes must leave the disk
    ended: bool = False  # whether the database has committed or refused the write
    result: Any = None  # the return value of `work`
    error: Exception | None = None  # why the database refused the write


class Writer:
    """Makes all changes of a database in its own thread. Any thread may queue them."""

    def __init__(self, database: Database) -> None:
        """Become the one app that writes to the database, and start the thread.

        Raises StoreError if the database is unusable, or another app writes to it.
        """
        self._database = database
        self._connection: Connection | None = database.own()
        self._changed = threading.Condition()  # its lock guards the fields below
        self._waiting: deque[Write] = deque()
        self._bytes = 0  # total size of the waiting writes
        self._lost = 0  # writes that did not fit into the queue
        self._cause = ""  # why nothing can be written now
        self._committing: float | None = None  # time.monotonic() when a commit began
        self._closed = False
        self._question = Write(_ask, ended=True)  # the newest write from `answers`
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """A sentence on why changes are not being saved; "" while all is well."""
        with self._changed:
            cause = self._cause or (LOST if self._hangs else "")
            if not cause:
                return ""
            sentence = (
                f"Runs are not being saved right now: {cause}. Training "
                "continues, and new data stays in memory until the database "
                "works again."
            )
            if self._lost:
                sentence += f" Changes that didn't fit and were lost: {self._lost}."
            return sentence

    @property
    def _hangs(self) -> bool:
        """Whether a commit takes very long, as on a disk that doesn't answer."""
        began = self._committing
        return began is not None and time.monotonic() > began + PATIENCE_SECONDS

    def put(self, work: Work, size: int = 0, erases: bool = False) -> Write:
        """Queue a write if it fits. `size` is the number of bytes of its large values.

        Returns at once, also if the queue is full and the write is lost.
        """
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
        write = self.put(work, size, erases)
        self.wait(write)
        return write

    def wait(self, write: Write) -> bool:
        """Wait up to PATIENCE_SECONDS for a commit; returns whether it has happened.

        If it hasn't, `problem` says why, and a queued write is made later. Raises the
        write's error if the database refuses the write.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: write.ended or self._cause or self._closed or self._hangs,
                PATIENCE_SECONDS,
            )
        if write.error is not None:
            raise write.error
        return write.ended

    def now(self, work: Work, erases: bool = False, later: bool = True) -> Any:
        """Make a write and return what `work` returns.

        Raises StoreError if the database is unreachable. Then the queued write is made
        later, but not if `later` is false.
        """
        if not later and self.problem:
            raise StoreError(words("not_made"))
        write = self.write(work, erases=erases)
        if write.ended:
            return write.result
        if later:
            raise StoreError(words("later"))
        # It stays in the queue, where it may be part of a batch already.
        write.work = _ask
        raise StoreError(words("not_made"))

    def answers(self, seconds: float) -> bool:
        """Whether the database takes changes; waits at most `seconds` to know.

        To find out, this method queues a write that changes nothing, unless
        the last write of this kind still waits: while the database hangs, the
        writes would pile up.
        """
        with self._changed:
            question = self._question
            if question.ended:
                question = self._question = Write(_ask)
                self._waiting.append(question)
                self._changed.notify_all()
            self._changed.wait_for(lambda: question.ended or self._cause, seconds)
            return question.ended and not self._cause

    def flush(self, seconds: float = PATIENCE_SECONDS) -> bool:
        """Wait up to `seconds` for the queued writes; returns whether all are made."""
        with self._changed:
            last = self._waiting[-1] if self._waiting else None
            return self._changed.wait_for(lambda: not last or last.ended, seconds)

    def close(self) -> None:
        """Make the queued writes, and end the thread.

        Gives up after PATIENCE_SECONDS.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(PATIENCE_SECONDS)
        if self._waiting:
            logger.error(
                "%d changes were not saved: %s", len(self._waiting), self._cause
            )

    # The writer's thread calls the methods below.

    def _run(self) -> None:
        single = 0  # after a failed batch: how many writes to make one at a time
        while batch := self._next(1 if single else BATCH):
            is_new = self._connection is None
            try:
                self._commit(batch)
            except Exception as error:
                self._drop_connection()
                if why := cause(error):
                    # If an old connection was cut, try a new one before waiting.
                    if (why == LOST and not is_new) or self._pause(why):
                        continue
                    break
                if len(batch) > 1:  # write them singly, to find the refused one
                    single = len(batch)
                    continue
                logger.exception("could not save a change")
                batch[0].error = error
            single = max(0, single - 1)
            self._end(batch)
        self._drop_connection()

    def _next(self, most: int) -> list[Write]:
        """Wait for writes, and return the first `most`, which stay in the queue.

        Returns [] once the writer is closed and no write waits.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return list(islice(self._waiting, most))

    def _commit(self, batch: list[Write]) -> None:
        self._committing = time.monotonic()
        try:
            self._make(batch)
        finally:
            self._committing = None

    def _make(self, batch: list[Write]) -> None:
        self._database.check()
        if self._connection is None:
            self._connection = self._database.connect()
        with self._connection.begin():
            for write in batch:
                with Session(self._connection) as session:
                    write.result = write.work(session)
                    session.flush()
        if any(write.erases and write.result for write in batch):
            self._database.erase(self._connection)

    def _drop_connection(self) -> None:
        """Close the connection, so that the next try opens a new one."""
        if self._connection is not None:
            with suppress(Exception):  # it is broken already
                self._connection.close()
            self._connection = None

    def _pause(self, why: str) -> bool:
        """Set `problem` and wait a second. Returns False if `close` was called."""
        with self._changed:
            if why != self._cause:
                logger.warning("nothing can be saved right now: %s", why)
            self._cause = why
            self._changed.notify_all()  # callers stop waiting for a commit
            return not self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)

    def _end(self, batch: list[Write]) -> None:
        with self._changed:
            for write in batch:
                self._waiting.popleft()
                self._bytes -= write.size
                write.ended = True
            if self._cause:
                logger.warning("saving works again; %d changes were lost", self._lost)
            self._cause, self._lost = "", 0
            self._changed.notify_all()


@dataclass(eq=False)
class Rows:
    """The base of the store's classes: reads in any thread, writes with the writer.

    If the database can't be reached, `read` and `writer.now` raise StoreError.
    """

    database: Database
    writer: Writer

    def read(self, query: Select) -> list[Any]:
        return self.database.read(lambda session: list(session.scalars(query)))


def _ask(session: Session) -> None:
    """Run an empty query. Without a statement, nothing would be sent to Postgres."""
    session.execute(text("SELECT 1"))
