"""Make room in a database that has grown to its limit.

While there is room, everything stays. After that, rows go in this order: each person's
ended jobs and measurements beside their newest 200 of each kind, also those of a class,
where those who have the most lose theirs first; then the ended jobs of those who
haven't come for longest, and after them what else is kept about such people, such as
answers. Those who came in the last day come last, and keep all this if classes hold
most of the room. But for the first step, runs of a class, and what is kept about its
members, stay until the class is deleted.
"""

import heapq
import math
import time
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    delete,
    exists,
    func,
    select,
    type_coerce,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.store.codec import StoreError
from core.store.database import Database
from core.store.runs import GOING_ON
from core.store.store import Store
from core.store.tables import Checkpoint, Measurement, Member, RunSummary, Visitor

OWN = 200  # a person's newest runs, which stay if there is room after all others
AT_ONCE = 5  # rows: the journal needs as much room as they do, on a disk nearly full
LOOK_AHEAD = 5_000  # rows: the order of so many is found at once
DAY_SECONDS = 86_400

ENDED = RunSummary.status.not_in(GOING_ON)
OUTSIDE = ENDED & RunSummary.class_id.is_(None)
# Whether a visitor is in no class, and has no run
HAS_NOTHING = ~exists().where(Member.visitor == Visitor.id) & ~exists().where(
    RunSummary.visitor == Visitor.id
)


class Deleted(NamedTuple):
    rows: int = 0
    bytes: int = 0


class Change(NamedTuple):
    """Delete the rows whose `key` is one of the values, if they meet the conditions."""

    key: InstrumentedAttribute[Any]
    values: list[str]
    conditions: tuple[ColumnElement[bool], ...] = ()


def make_room(store: Store, wanted: float) -> Deleted:
    """Delete rows that take about `wanted` bytes, or less if no more may go.

    Raises StoreError if nothing can be deleted now; that isn't done later then.
    """
    rows = freed = 0
    changes = _changes(store)
    try:
        while freed < wanted and (change := next(changes, None)):
            make = partial(_make, store.database, change)
            deleted = store.writer.now(make, later=False)
            rows, freed = rows + deleted.rows, freed + deleted.bytes
    except StoreError:
        if not rows:
            raise
    return Deleted(rows, freed)


def classes_hold_most(store: Store) -> bool:
    """Whether runs of classes take more than half of what the database takes.

    The weights are nearly all of a run. Raises StoreError.
    """
    weights = select(func.coalesce(func.sum(func.length(Checkpoint.state_dict)), 0))
    of_classes = weights.join(RunSummary, RunSummary.id == Checkpoint.run_id).where(
        RunSummary.class_id.is_not(None)
    )
    return _read(store, of_classes)[0][0] > store.database.used_bytes() / 2


def _make(database: Database, change: Change, session: Session) -> Deleted:
    size = database.size_of(session, change.key, change.values)
    rows = delete(change.key.class_).where(
        change.key.in_(change.values), *change.conditions
    )
    count = session.connection().execute(rows).rowcount
    return Deleted(count, size if count else 0)


def _changes(store: Store) -> Iterator[Change]:
    """The changes that make room, the first one first."""
    # A run with a name counts as a new one.
    by_age = RunSummary.name != "", RunSummary.seq
    yield from _beside_newest(store, RunSummary, RunSummary.address, by_age, ENDED)
    by_time = (Measurement.measured_at,)
    yield from _beside_newest(store, Measurement, Measurement.kind, by_time)
    yield from _not_seen_since(store, time.time() - DAY_SECONDS)
    if not classes_hold_most(store):
        yield from _not_seen_since(store, math.inf)


def _beside_newest(
    store: Store,
    kind: type[RunSummary] | type[Measurement],
    function: InstrumentedAttribute[str],
    order: tuple[Any, ...],
    *conditions: ColumnElement[bool],
) -> Iterator[Change]:
    """Changes that leave the last OWN rows, by `order`, of each visitor and function.

    Those who have the most rows come first.
    """
    count = func.count()
    name = type_coerce(function, String)  # as stored, maybe by another version
    groups = (
        select(count, kind.visitor, name)
        .where(kind.visitor.is_not(None), *conditions)
        .group_by(kind.visitor, name)
        .having(count > OWN)
    )

    def oldest(visitor: str, of: str) -> Iterator[str]:
        # Without the "", SQLite would look through everybody's rows of this function.
        own = kind.visitor == visitor, name + "" == of
        return _ids(store, select(kind.id).where(*own, *conditions).order_by(*order))

    most = [
        (-number, visitor, of, oldest(visitor, of))
        for number, visitor, of in _read(store, groups)
    ]
    heapq.heapify(most)
    while most:
        number, *group, rows = heapq.heappop(most)
        if some := list(islice(rows, min(AT_ONCE, -number - OWN))):
            yield Change(kind.id, some, conditions)
            if -number - len(some) > OWN:
                heapq.heappush(most, (number + len(some), *group, rows))


def _not_seen_since(store: Store, moment: float) -> Iterator[Change]:
    """Changes that delete what is kept about those who haven't come since then.

    The ended runs go first, beginning with those of the app itself.
    """
    absent = Visitor.seen < moment
    yield from _runs_of(store, RunSummary.visitor.is_(None))
    has_run = exists().where(RunSummary.visitor == Visitor.id, OUTSIDE)
    by_visit = select(Visitor.id).where(absent).order_by(Visitor.seen)
    for visitor in _ids(store, by_visit.where(has_run)):
        yield from _runs_of(store, RunSummary.visitor == visitor)
    while gone := [
        row[0] for row in _read(store, by_visit.where(HAS_NOTHING), AT_ONCE)
    ]:
        yield Change(Measurement.visitor, gone)
        yield Change(Visitor.id, gone, (HAS_NOTHING, absent))
        store.visitors.forget_visits(gone)


def _runs_of(store: Store, owner: ColumnElement[bool]) -> Iterator[Change]:
    ids = select(RunSummary.id).where(owner, OUTSIDE).order_by(RunSummary.seq)
    rows = _ids(store, ids)
    while some := list(islice(rows, AT_ONCE)):
        yield Change(RunSummary.id, some, (OUTSIDE,))


def _ids(store: Store, query: Select[Any]) -> Iterator[str]:
    """The ids that a query finds. Whoever takes them deletes their rows meanwhile."""
    while rows := _read(store, query, LOOK_AHEAD):
        yield from (row[0] for row in rows)
        if len(rows) < LOOK_AHEAD:
            break


def _read(
    store: Store, query: Select[*tuple[Any, ...]], most: int | None = None
) -> list[Any]:
    """The rows of a query that may take long, as others must not wait meanwhile."""
    return store.database.read(
        lambda session: list(session.execute(query.limit(most))), is_long=True
    )
