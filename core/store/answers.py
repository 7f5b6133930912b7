"""What visitors answered: the questions of the lessons, and their guesses."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, select

from core.store import codec
from core.store.database import Database
from core.store.tables import answers, members, put
from core.store.visitors import know
from core.store.writer import Writer


class Answers:
    """The newest to each question; reads anywhere, writes through the one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    def keep(self, visitor: str, question: str, answer: Any) -> None:
        """Keep an answer in the place of the one before, and wait until it is.

        Where that can't be now it is kept later. TypeError where it is no plain data.
        """
        value = codec.dumps(answer)

        def work(connection: Connection) -> None:
            know(connection, visitor)
            row = {"visitor": visitor, "question": question, "value": value}
            put(connection, answers, **row)

        self._writer.write(work, len(value))

    def of(self, visitor: str) -> dict[str, Any]:
        """The answers of a visitor, by their questions. Raises StoreError."""
        query = select(answers.c.question, answers.c.value)
        with self._database.read() as connection:
            rows = connection.execute(query.where(answers.c.visitor == visitor))
            return {key: codec.loads(value, "This answer") for key, value in rows}

    def of_class(
        self, class_id: str, questions: Collection[str]
    ) -> dict[str, dict[str, Any]]:
        """What the members of a class answered to some questions.

        By question, then by visitor. Raises StoreError.
        """
        query = (
            select(answers)
            .join(members, members.c.visitor == answers.c.visitor)
            .where(members.c.class_id == class_id, answers.c.question.in_(questions))
        )
        found: dict[str, dict[str, Any]] = {key: {} for key in questions}
        with self._database.read() as connection:
            for visitor, question, value in connection.execute(query):
                found[question][visitor] = codec.loads(value, "This answer")
        return found
