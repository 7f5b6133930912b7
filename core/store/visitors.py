"""Visitors and their answers.

A browser's cookie has the visitor's id. With the visitor's code, another browser gets
the same id.
"""

import secrets
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, select, update
from sqlalchemy.orm import Session

from core.store import codec
from core.store.codec import DamagedError, StoreError
from core.store.tables import Answer, Measurement, Member, Visitor
from core.store.writer import Rows
from to_device.errors import ExplainedError
from to_device.words import Words

# Sizes of answers in characters: of one; of one that always fits; of all of a visitor's
LONGEST_ANSWER, SHORT_ANSWER, MOST_OF_VISITOR = 40_000, 1_000, 400_000
SEEN_SECONDS = 3600.0  # at most one visit of each visitor is written in this time
CONSONANTS, VOWELS = "bdfghjklmnprstvz", "aiou"
WORDS = 4  # in a visitor's code: 64 random bits, so nobody can guess the code
words = Words(__file__)


def new_code(count: int = WORDS) -> str:
    """A code of `count` random words that can be read aloud (proquints)."""
    letters = (CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS)
    words = ("".join(map(secrets.choice, letters)) for _ in range(count))
    return "-".join(words)


def as_code(text: str) -> str:
    """The stored form of a typed code: lower case, hyphens between the words."""
    letters = "".join(filter(str.isalpha, text.lower()))
    words = (letters[start : start + 5] for start in range(0, len(letters), 5))
    return "-".join(words)


def ensure_visitor(session: Session, visitor: str) -> None:
    """Add the visitor's row if it is missing. `session` is the session of a write."""
    if session.get(Visitor, visitor) is None:
        now = time.time()
        session.add(Visitor(id=visitor, code=new_code(), created=now, seen=now))
        session.flush()


@dataclass(eq=False)
class Visitors(Rows):
    _lock: threading.Lock = field(default_factory=threading.Lock)
    # By visitor: time.monotonic() of the written visit, in the order of these times
    _visits: dict[str, float] = field(default_factory=dict)

    def touch(self, visitor: str) -> None:
        """Queue a visit to be stored, with the visitor's row if missing."""
        now, moment = time.time(), time.monotonic()
        with self._lock:
            # Each visit is dropped once, so a call takes as long with many visitors.
            while self._visits:
                oldest = next(iter(self._visits))
                if moment - self._visits[oldest] < SEEN_SECONDS:
                    break
                del self._visits[oldest]
            if visitor in self._visits:
                return
            self._visits[visitor] = moment

        def work(session: Session) -> None:
            ensure_visitor(session, visitor)
            own = Visitor.id == visitor
            session.execute(update(Visitor).where(own).values(seen=now))

        self.writer.put(work)

    def get(self, visitor: str) -> Visitor | None:
        return self._first(Visitor.id == visitor)

    def by_code(self, code: str) -> Visitor | None:
        """The visitor with this code, in any spelling; None if no visitor has it."""
        return self._first(Visitor.code == as_code(code))

    def _first(self, condition: ColumnElement[bool]) -> Visitor | None:
        return next(iter(self.read(select(Visitor).where(condition))), None)

    def delete(self, visitor: str) -> bool:
        """Delete all rows of a visitor; returns whether there were any.

        The caller must end the visitor's jobs.
        """
        changes = (
            delete(Measurement).where(Measurement.visitor == visitor),
            delete(Visitor).where(Visitor.id == visitor),
        )

        def work(session: Session) -> int:
            connection = session.connection()
            return sum(connection.execute(change).rowcount for change in changes)

        deleted = self.writer.now(work, erases=True)
        self.forget_visits([visitor])
        return bool(deleted)

    def forget_visits(self, visitors: Iterable[str]) -> None:
        """Let the next visit be written: these visitors' rows are deleted."""
        with self._lock:
            for visitor in visitors:
                self._visits.pop(visitor, None)


class Answers(Rows):
    """Each visitor's newest answer to each question. A guess counts as an answer."""

    def keep(self, visitor: str, question: str, answer: Any) -> None:
        """Store a visitor's answer to a question, and wait for the commit.

        If the database can't be reached, the answer is stored later. Raises TypeError
        if codec.dumps can't write the answer, and ExplainedError if the answer, or all
        of the visitor's answers together, are too long.
        """
        value = codec.dumps(answer)
        if len(value) > LONGEST_ANSWER or self._full(visitor, question, len(value)):
            raise ExplainedError(
                "There is not enough room for this answer beside your other "
                "answers. Shorten it."
            )

        def work(session: Session) -> None:
            ensure_visitor(session, visitor)
            session.merge(Answer(visitor=visitor, question=question, value=value))

        self.writer.write(work, len(value))

    def _full(self, visitor: str, question: str, size: int) -> bool:
        """Whether a new answer to a question is too much beside the visitor's others.

        Small answers always fit, since there are only so many questions.
        """
        if size <= SHORT_ANSWER:
            return False
        others = (Answer.visitor == visitor) & (Answer.question != question)
        total = select(func.coalesce(func.sum(func.length(Answer.value)), 0))
        with suppress(StoreError):  # the answer waits in memory, which has a limit too
            return bool(self.read(total.where(others))[0] + size > MOST_OF_VISITOR)
        return False

    def of(self, visitor: str) -> dict[str, Any]:
        """Return {question: answer}."""
        query = select(Answer).where(Answer.visitor == visitor)
        return {row.question: answer for row, answer in self._readable(query)}

    def of_class(
        self, class_id: str, questions: Collection[str]
    ) -> dict[str, dict[str, Any]]:
        """Return {question: {visitor: answer}} for the members of a class."""
        query = (
            select(Answer)
            .join(Member, Member.visitor == Answer.visitor)
            .where(Member.class_id == class_id, Answer.question.in_(questions))
        )
        answers: dict[str, dict[str, Any]] = {key: {} for key in questions}
        for row, answer in self._readable(query):
            answers[row.question][row.visitor] = answer
        return answers

    def _readable(self, query: Select[Answer]) -> Iterator[tuple[Answer, Any]]:
        """Each row with its answer.

        An answer of another version of this app is left out, as if it had not been
        given, so that it doesn't take away all the others, or a whole class's.
        """
        for row in self.read(query):
            with suppress(DamagedError):
                yield row, codec.loads(row.value, "This answer")
