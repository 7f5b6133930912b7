"""Classes of students: the rules, the members, and what the teachers did.

core.classroom decides what may change; this module stores it.
"""

import time
import uuid
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Update, delete, select, update
from sqlalchemy.orm import Session

from core.store import codec
from core.store.runs import GOING_ON
from core.store.tables import Act, Class, Member, RunSummary, clean
from core.store.visitors import ensure_visitor, new_code
from core.store.writer import Rows, Write

CODE_WORDS = 2  # a class's code is short, since people type it from a screen


class Classes(Rows):
    def all(self) -> list[Class]:
        """All classes, the newest first."""
        return [
            replace(row, rules=codec.loads(row.rules, "This class"))
            for row in self.read(select(Class).order_by(Class.created.desc()))
        ]

    def members(self, class_id: str) -> list[Member]:
        """The members of a class, in the order in which they came."""
        query = select(Member).where(Member.class_id == class_id)
        return self.read(query.order_by(Member.joined))

    def of(self, visitor: str) -> list[dict[str, Any]]:
        """The classes that a visitor is or was in, with the visitor's name there."""
        query = select(Class.name.label("class"), Member.name, Member.joined)
        memberships = query.where(
            Member.class_id == Class.id, Member.visitor == visitor
        )
        return self.database.read(
            lambda session: [row._asdict() for row in session.execute(memberships)]
        )

    def acts(self, class_id: str | None = None) -> list[Act]:
        """The log of a class, or of all classes; the newest entry first."""
        query = select(Act).order_by(Act.at.desc())
        if class_id is not None:
            query = query.where(Act.class_id == class_id)
        return self.read(query)

    def runs(self, class_id: str) -> list[RunSummary]:
        return self.read(select(RunSummary).where(RunSummary.class_id == class_id))

    # The methods below change rows. Each change may be made twice without harm, as
    # core.store.writer demands.

    def create(self, name: str, size: int, rules: Any) -> Class:
        row = Class(
            id=uuid.uuid4().hex[:10],
            code=new_code(CODE_WORDS),
            name=clean(name),
            size=size,
            rules=codec.dumps(rules),
            created=time.time(),
        )
        self.writer.now(lambda session: session.merge(row))
        return replace(row, rules=rules)

    def change(self, class_id: str, **values: Any) -> None:
        """Set some columns of a class. If it opens, all other classes close."""
        if "rules" in values:
            values["rules"] = codec.dumps(values["rules"])

        def work(session: Session) -> None:
            if values.get("is_open"):
                session.execute(update(Class).values(is_open=False))
            session.execute(_change(class_id, **values))

        self.writer.now(work)

    def delete(self, class_id: str) -> None:
        """Delete a class with its members, its runs, and its log."""
        change = delete(Class).where(Class.id == class_id)
        self.writer.now(
            lambda session: session.connection().execute(change).rowcount, erases=True
        )

    def join(self, member: Member, joined: int, since: float) -> Write:
        """Add a member, without waiting; `joined` counts all who have joined so far.

        The member's jobs that haven't ended, and were submitted after the time.time
        `since`, become the class's.
        """
        begun = update(RunSummary).where(
            RunSummary.visitor == member.visitor,
            RunSummary.class_id.is_(None),
            RunSummary.status.in_(GOING_ON),
            RunSummary.submitted >= since,
        )

        def work(session: Session) -> None:
            ensure_visitor(session, member.visitor)
            session.merge(member)
            session.execute(_change(member.class_id, joined=joined))
            session.execute(begun.values(class_id=member.class_id))

        return self.writer.put(work)

    def change_member(self, member: Member, **values: Any) -> Write:
        change = update(Member).where(_row_of(member)).values(values)
        return self.writer.put(lambda session: session.execute(change))

    def remove(self, member: Member) -> None:
        change = delete(Member).where(_row_of(member))
        self.writer.now(lambda session: session.execute(change))

    def count_outside(self, class_id: str, number: int) -> Write:
        """Without waiting, store how many runs people outside the class have begun."""
        change = _change(class_id, outside=number)
        return self.writer.put(lambda session: session.execute(change))

    def write_down(self, who: str, act: str, class_id: str | None = None) -> None:
        """Add an entry to the log, without waiting."""
        row = Act(uuid.uuid4().hex, class_id, time.time(), clean(who), clean(act))
        self.writer.put(lambda session: session.merge(row))


def _change(class_id: str, **values: Any) -> Update:
    return update(Class).where(Class.id == class_id).values(values)


def _row_of(member: Member) -> ColumnElement[bool]:
    return (Member.class_id == member.class_id) & (Member.visitor == member.visitor)
