"""Make room in a database that has grown to its limit.

While there is room, everything stays. After that, rows go in this order: each person's
ended jobs and measurements beside their newest 200 of each kind, where those who have
the most lose theirs first; then the ended jobs of those who haven't come for longest;
then what else is kept about them, such as answers. Otherwise than in the first step,
runs of a class, and what is kept about its members, stay until the class is deleted.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Delete, Select, delete, exists, func, select
from sqlalchemy.orm import Session

from core.store.runs import GOING_ON
from core.store.store import Store
from core.store.tables import Measurement, Member, RunSummary, Visitor

OWN = 200  # a person's newest runs, which stay if there is room after all others
SHARE = 0.95  # of the limit: so full is the database once there is room again
AT_ONCE = 25  # rows: deleting this many runs keeps other changes waiting for 0.1 s
LOOK_AHEAD = 5_000  # rows: the order of so many is found at once

ENDED = RunSummary.status.not_in(GOING_ON)
# Whether a visitor is in no class, and has no run
HAS_NOTHING = ~exists().where(Member.visitor == Visitor.id) & ~exists().where(
    RunSummary.visitor == Visitor.id
)


def make_room(store: Store, most: float) -> int:
    """Delete rows until the database takes less than `most` bytes.

    Returns how many runs and other rows were deleted. Raises StoreError.
    """
    deleted = 0
    if store.database.used_bytes() <= most:
        return deleted
    for change in _changes(store):
        deleted += store.writer.now(partial(_make, change))
        if store.database.used_bytes() <= SHARE * most:
            break
    return deleted


def _make(change: Delete, session: Session) -> int:
    return session.connection().execute(change).rowcount


def _changes(store: Store) -> Iterator[Delete]:
    """The changes that make room, the first one first."""
    yield from _in_parts(store, RunSummary.id, _beside_newest_runs(), ENDED)
    yield from _in_parts(store, Measurement.id, _beside_newest_measurements())
    yield from _in_parts(store, RunSummary.id, _by_visit(), ENDED)
    visitors = select(Visitor.id).where(HAS_NOTHING).order_by(Visitor.seen)
    while gone := store.runs.read(visitors.limit(AT_ONCE)):
        yield delete(Measurement).where(Measurement.visitor.in_(gone))
        yield delete(Visitor).where(Visitor.id.in_(gone), HAS_NOTHING)
        store.visitors.forget_visits(gone)


def _in_parts(
    store: Store, key: Any, order: Select, *conditions: ColumnElement[bool]
) -> Iterator[Delete]:
    """Changes that delete the rows with the keys in `order`, some at a time.

    A row that doesn't meet the conditions anymore stays.
    """
    while ids := store.runs.read(order.limit(LOOK_AHEAD)):
        for first in range(0, len(ids), AT_ONCE):
            some = ids[first : first + AT_ONCE]
            yield delete(key.class_).where(key.in_(some), *conditions)
        if len(ids) < LOOK_AHEAD:
            break


def _by_visit() -> Select:
    """The ids of ended runs outside of classes, by the last visits of their owners."""
    return (
        select(RunSummary.id)
        .outerjoin(Visitor, Visitor.id == RunSummary.visitor)
        .where(ENDED, RunSummary.class_id.is_(None))
        .order_by(func.coalesce(Visitor.seen, 0.0), RunSummary.seq)
    )


def _beside_newest_runs() -> Select:
    """The ids of ended runs that aren't among their owner's newest OWN.

    Runs that have a name count as the newest.
    """
    order = (RunSummary.name == "").asc(), RunSummary.seq.desc()
    return _beside_newest(RunSummary, RunSummary.address, order, ENDED)


def _beside_newest_measurements() -> Select:
    order = (Measurement.measured_at.desc(),)
    return _beside_newest(Measurement, Measurement.kind, order)


def _beside_newest(
    kind: type[RunSummary] | type[Measurement],
    function: Any,
    order: tuple[ColumnElement, ...],
    *conditions: ColumnElement[bool],
) -> Select:
    """The ids of rows that aren't the first OWN of a visitor and a function.

    The first ids are of those who have the most rows.
    """
    place = func.row_number().over(
        partition_by=(kind.visitor, function), order_by=order
    )
    rows = select(kind.id, place.label("place"))
    placed = rows.where(kind.visitor.is_not(None), *conditions).subquery()
    return select(placed.c.id).where(placed.c.place > OWN).order_by(-placed.c.place)
