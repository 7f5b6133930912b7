"""Classes: who is in one, what it allows, and what its teacher did.

This keeps them; core.classroom decides.
"""

import time
import uuid
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Table, delete, select, update

from core.store import codec
from core.store.database import Database
from core.store.tables import acts, add, classes, clean, members, runs
from core.store.visitors import know, new_code
from core.store.writer import Write, Writer

CODE_WORDS = 2  # of 16 bits each: it is read from a wall and typed, and may be changed


@dataclass(frozen=True)
class Class:
    """Columns of core.store.tables are named the same."""

    id: str
    code: str  # to join with: "lusab-babad"
    name: str
    size: int  # how many may join
    rules: Any  # a core.classroom.rules.Rules
    is_open: bool  # one at a time
    is_paused: bool
    created: float  # seconds since 1970, as all times here
    ends: float | None  # when all of it is to be deleted; None: never
    joined: int  # how many ever, the deleted too
    outside: int  # runs of those who have not joined, all together


@dataclass(frozen=True)
class Member:
    """Somebody in a class."""

    class_id: str
    visitor: str
    name: str
    joined: float
    runs: int  # begun in this class, the deleted too


@dataclass(frozen=True)
class Act:
    """What a teacher did."""

    id: str
    class_id: str | None
    at: float
    who: str
    what: str


class Classes:
    """Reads anywhere, writes through the one writer.

    Reads raise StoreError; so do the writes that wait, where the database is away.
    """

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

    # To look at

    def all(self) -> list[Class]:
        """The newest first."""
        return [
            Class(**row | {"rules": codec.loads(row["rules"], "This class")})
            for row in self._rows(classes, classes.c.created.desc())
        ]

    def members(self, class_id: str) -> list[Member]:
        """Who is in a class, in the order they came."""
        found = self._rows(members, members.c.joined, members.c.class_id == class_id)
        return [Member(**row) for row in found]

    def of(self, visitor: str) -> list[dict[str, Any]]:
        """The classes that a visitor is or was in, and as whom."""
        mine = select(classes.c.name.label("class"), members.c.name, members.c.joined)
        query = mine.join(members).where(members.c.visitor == visitor)
        with self._database.read() as connection:
            return [row._asdict() for row in connection.execute(query)]

    def acts(self, class_id: str | None = None) -> list[Act]:
        """What was done in a class, or in all and beside them; the newest first."""
        which = () if class_id is None else (acts.c.class_id == class_id,)
        return [Act(**row) for row in self._rows(acts, acts.c.at.desc(), *which)]

    def runs(self, class_id: str) -> dict[str, str]:
        """The runs of a class, by id, with whose each is."""
        query = select(runs.c.id, runs.c.visitor).where(runs.c.class_id == class_id)
        with self._database.read() as connection:
            return {row.id: row.visitor for row in connection.execute(query)}

    def _rows(self, table: Table, order: Any, *which: Any) -> list[dict[str, Any]]:
        with self._database.read() as connection:
            found = connection.execute(select(table).where(*which).order_by(order))
            return [row._asdict() for row in found]

    # To change; each may be done twice

    def create(self, name: str, size: int, rules: Any) -> Class:
        """A new class, which is closed."""
        made = Class(
            id=uuid.uuid4().hex[:10],
            code=new_code(CODE_WORDS),
            name=clean(name),
            size=size,
            rules=rules,
            is_open=False,
            is_paused=False,
            created=time.time(),
            ends=None,
            joined=0,
            outside=0,
        )
        row = _row(made) | {"rules": codec.dumps(rules)}
        self._writer.now(lambda connection: add(connection, classes, **row))
        return made

    def change(self, class_id: str, **values: Any) -> None:
        """New values of some columns; the class that opens closes the others."""
        if "rules" in values:
            values["rules"] = codec.dumps(values["rules"])

        def work(connection: Connection) -> None:
            if values.get("is_open"):
                connection.execute(update(classes).values(is_open=False))
            this = classes.c.id == class_id
            connection.execute(update(classes).where(this).values(values))

        self._writer.now(work)

    def delete(self, class_id: str) -> None:
        """Delete a class with its members, its runs, and what its teacher did."""
        this = delete(classes).where(classes.c.id == class_id)
        self._writer.now(lambda connection: connection.execute(this), erases=True)

    def join(self, member: Member, joined: int) -> Write:
        """Somebody is in a class, which so many have joined now; nobody waits."""

        def work(connection: Connection) -> None:
            know(connection, member.visitor)
            add(connection, members, **_row(member))
            this = classes.c.id == member.class_id
            connection.execute(update(classes).where(this).values(joined=joined))

        return self._writer.put(work)

    def change_member(self, member: Member, **values: Any) -> Write:
        """New values of some columns; nobody waits."""
        this = members.c.class_id == member.class_id
        whose = members.c.visitor == member.visitor
        statement = update(members).where(this, whose).values(values)
        return self._writer.put(lambda connection: connection.execute(statement))

    def count_outside(self, class_id: str, number: int) -> Write:
        """So many runs were begun by people who have not joined; nobody waits."""
        this = classes.c.id == class_id
        statement = update(classes).where(this).values(outside=number)
        return self._writer.put(lambda connection: connection.execute(statement))

    def write_down(self, who: str, what: str, class_id: str | None = None) -> None:
        """Who did what, now; nobody waits."""
        act = Act(uuid.uuid4().hex, class_id, time.time(), clean(who), clean(what))
        self._writer.put(lambda connection: add(connection, acts, **_row(act)))


def _row(of: Any) -> dict[str, Any]:
    return {field.name: getattr(of, field.name) for field in fields(of)}
