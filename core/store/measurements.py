"""Stored measurements. Pages first show the newest one of this machine."""

import logging
import time
import uuid
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.store import codec
from core.store.codec import DamagedError
from core.store.tables import Measurement
from core.store.visitors import ensure_visitor
from core.store.writer import Rows

logger = logging.getLogger(__name__)


class Measurements(Rows):
    def keep(
        self,
        kind: str,
        value: Any,
        *,
        machine: str,
        provenance: Any = None,
        subject: str = "",
        visitor: str = "",
        measured_at: float | None = None,
    ) -> None:
        """Queue a result to be stored.

        Raises TypeError if `value` or `provenance` isn't plain data.
        """
        row = Measurement(
            id=uuid.uuid4().hex,
            kind=kind,
            machine=machine,
            subject=subject,
            visitor=visitor or None,
            measured_at=measured_at or time.time(),
            provenance=codec.dumps(provenance),
            value=codec.dumps(value),
        )

        def work(session: Session) -> None:
            if visitor:
                ensure_visitor(session, visitor)
            session.merge(row)

        self.writer.put(work, len(row.value))

    def newest_ids(
        self,
        kind: str,
        machine: str,
        subject: str | None = None,
        students: Collection[str] = (),
        most: int = 1,
    ) -> list[str]:
        """The ids of the newest measurements, at most `most`, the newest first.

        Measurements by `students` count only if there are no others. If `subject`, the
        id of a run, is given, only measurements of this run count.
        """
        is_by_student = func.coalesce(Measurement.visitor, "").in_(students)
        query = (
            select(Measurement.id)
            .where(Measurement.kind == kind, Measurement.machine == machine)
            .order_by(Measurement.measured_at.desc())
            .limit(most)
        )
        if subject is not None:
            query = query.where(Measurement.subject == subject)
        by_others = self.read(query.where(~is_by_student))
        return by_others or (self.read(query) if students else [])

    def get(self, measurement_id: str) -> Measurement | None:
        """The measurement; None if the row is missing or can't be read."""
        return next(iter(self._read(Measurement.id == measurement_id)), None)

    def of(self, visitor: str) -> list[Measurement]:
        """All that a visitor measured, the oldest first."""
        return self._read(Measurement.visitor == visitor)

    def _read(self, condition: Any) -> list[Measurement]:
        query = select(Measurement).where(condition).order_by(Measurement.measured_at)
        readable = []
        for row in self.read(query):
            try:
                provenance = codec.loads(row.provenance, "This measurement")
                value = codec.loads(row.value, "This measurement")
                readable.append(replace(row, provenance=provenance, value=value))
            except DamagedError:
                message = "could not read a measurement made by %s"
                logger.warning(message, row.kind, exc_info=True)
        return readable
