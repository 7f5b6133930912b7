"""Measurements: pages open with the newest of this machine, and say when it was."""

import logging
import time
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from core.store import codec
from core.store.codec import DamagedError
from core.store.database import Database
from core.store.tables import add, measurements
from core.store.visitors import know
from core.store.writer import Writer

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measurement:
    """Something that was measured, and what it has to be read with."""

    id: str
    kind: str  # the address of what measured it: "core.compare.race:race"
    machine: str  # an identity that no two machines share
    subject: str  # what of, where a kind has several; else empty
    visitor: str | None  # who asked for it; None: the app itself
    measured_at: float  # seconds since 1970
    provenance: Any  # the environment, or what else the reader must know
    value: Any  # the result


class Measurements:
    """Reads anywhere, writes through the one writer."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database, self._writer = database, writer

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
        """Keep a result; nobody waits. TypeError where it is no plain data."""
        row = dict(
            id=uuid.uuid4().hex,
            kind=kind,
            machine=machine,
            subject=subject,
            visitor=visitor or None,
            measured_at=time.time() if measured_at is None else measured_at,
            provenance=codec.dumps(provenance),
            value=codec.dumps(value),
        )

        def work(connection: Connection) -> None:
            if visitor:
                know(connection, visitor)
            add(connection, measurements, **row)

        self._writer.put(work, len(str(row["value"])))

    def newest(
        self, kind: str, machine: str, subject: str | None = None
    ) -> Measurement | None:
        """The newest of a machine, of one subject or of any; None: there is none.

        One that this version can't read counts as none. Raises StoreError.
        """
        newest = self.newest_id(kind, machine, subject)
        return None if newest is None else self.get(newest)

    def newest_id(
        self, kind: str, machine: str, subject: str | None = None
    ) -> str | None:
        """The id of the newest, for whoever has read it before. Raises StoreError."""
        query = (
            select(measurements.c.id)
            .where(measurements.c.kind == kind, measurements.c.machine == machine)
            .order_by(measurements.c.measured_at.desc())
            .limit(1)
        )
        if subject is not None:
            query = query.where(measurements.c.subject == subject)
        with self._database.read() as connection:
            return connection.execute(query).scalar()

    def get(self, measurement_id: str) -> Measurement | None:
        """The measurement; None where there is none that this version can read.

        Raises StoreError.
        """
        query = select(measurements).where(measurements.c.id == measurement_id)
        with self._database.read() as connection:
            row = connection.execute(query).first()
        return None if row is None else _read(row._asdict())

    def of(self, visitor: str) -> list[Measurement]:
        """All that a visitor measured, the oldest first."""
        query = (
            select(measurements)
            .where(measurements.c.visitor == visitor)
            .order_by(measurements.c.measured_at)
        )
        with self._database.read() as connection:
            rows = [row._asdict() for row in connection.execute(query)]
        return [found for row in rows if (found := _read(row)) is not None]


def _read(row: dict[str, Any]) -> Measurement | None:
    try:
        for name in ("provenance", "value"):
            row[name] = codec.loads(row[name], "This measurement")
    except DamagedError:
        logger.warning("a measurement of %s can't be read", row["kind"], exc_info=True)
        return None
    return Measurement(**row)
