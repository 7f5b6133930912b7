"""Visitors: who came, known by an id in a cookie and a code to come back with."""

import secrets
import threading
import time
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from core.store.database import Database
from core.store.tables import add, measurements, visitors
from core.store.writer import Writer

SEEN_SECONDS = 3600.0  # a visit is written down once in it, not at every click
CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aiou"
WORDS = 4  # of a code, 16 bits each: nobody guesses 64


@dataclass(frozen=True)
class Visitor:
    """A browser, or several that share a code."""

    id: str
    code: str  # to come back with: "lusab-babad-gutih-tugad"
    created: float  # seconds since 1970
    seen: float  # last, to the hour


def new_code(count: int = WORDS) -> str:
    """Words that can be read aloud and that nobody guesses: proquints."""
    letters = (CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS)
    words = ("".join(map(secrets.choice, letters)) for _ in range(count))
    return "-".join(words)


def as_code(typed: str) -> str:
    """The code that somebody typed, in whatever case and with whatever between."""
    letters = "".join(filter(str.isalpha, typed.lower()))
    words = (letters[start : start + 5] for start in range(0, len(letters), 5))
    return "-".join(words)


def know(connection: Connection, visitor: str) -> None:
    """Part of a write: have a row of this visitor."""
    now = time.time()
    add(connection, visitors, id=visitor, code=new_code(), created=now, seen=now)


class Visitors:
    """Reads anywhere, writes through the one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}  # when each was written down last

    def new(self) -> str:
        """The id of a new visitor, whose row follows; it never waits."""
        visitor = secrets.token_hex(16)
        self.touch(visitor)
        return visitor

    def touch(self, visitor: str) -> None:
        """The visitor is here; one that was forgotten is known again."""
        now = time.time()
        with self._lock:
            if now - self._seen.get(visitor, 0.0) < SEEN_SECONDS:
                return
            old = [each for each, t in self._seen.items() if now - t > SEEN_SECONDS]
            for each in old:
                del self._seen[each]
            self._seen[visitor] = now

        def work(connection: Connection) -> None:
            know(connection, visitor)
            here = visitors.c.id == visitor
            connection.execute(update(visitors).where(here).values(seen=now))

        self._writer.put(work)

    def get(self, visitor: str) -> Visitor | None:
        """None where the id is not known. Raises StoreError."""
        return self._one(visitors.c.id == visitor)

    def by_code(self, code: str) -> Visitor | None:
        """Whose code it is, however it was typed; None: nobody's. Raises StoreError."""
        return self._one(visitors.c.code == as_code(code))

    def _one(self, condition: object) -> Visitor | None:
        query = select(visitors).where(condition)  # type: ignore[arg-type]
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else Visitor(*row)

    def delete(self, visitor: str) -> None:
        """Delete a visitor with all their runs and measurements, for good.

        Raises StoreError where that has to wait until the database is back.
        """

        def work(connection: Connection) -> None:
            theirs = measurements.c.visitor == visitor
            connection.execute(delete(measurements).where(theirs))
            connection.execute(delete(visitors).where(visitors.c.id == visitor))

        self._writer.now(work, erases=True)
        with self._lock:
            self._seen.pop(visitor, None)
