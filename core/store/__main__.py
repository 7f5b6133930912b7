"""Back up, restore, upgrade, and purge the database: python -m core.store

DATABASE_URL names the database; by default, the database is the file in data/.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.store.backup import backup, restore
from core.store.codec import StoreError
from core.store.runs import GOING_ON
from core.store.store import Store
from core.store.tables import Measurement, RunSummary, Visitor
from to_device.errors import Parser, end_with_pipe

DAY_SECONDS = 86_400.0


def purge(store: Store, days: float) -> int:
    """Delete ended runs, measurements, and visitors without runs, if older than `days`.

    Returns how many rows were deleted. Raises StoreError.
    """
    before = time.time() - days * DAY_SECONDS
    has_runs = select(RunSummary.id).where(RunSummary.visitor == Visitor.id).exists()
    old = [
        delete(RunSummary).where(
            RunSummary.submitted < before, RunSummary.status.not_in(GOING_ON)
        ),
        delete(Measurement).where(Measurement.measured_at < before),
        delete(Visitor).where(Visitor.seen < before, ~has_runs),
    ]

    def work(session: Session) -> int:
        connection = session.connection()
        return sum(connection.execute(statement).rowcount for statement in old)

    return store.writer.now(work, erases=True)


def main(
    arguments: Sequence[str] | None = None, prog: str = "python -m core.store"
) -> int:
    parser = Parser(prog, description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("backup", "write everything to FILE, even while the app runs"),
        ("restore", "fill an empty database from FILE"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("file", type=Path, metavar="FILE")
    commands.add_parser(
        "upgrade", help="upgrade the database to this version of the app"
    )
    command = commands.add_parser("purge", help="delete old data")
    command.add_argument("--older-than-days", type=_days, required=True, metavar="N")
    options = parser.parse_args(arguments)
    end_with_pipe()
    try:
        if options.command == "backup":
            backup(None, options.file)
            print(f"The backup is in {options.file}.")
        elif options.command == "restore":
            restore(None, options.file)
            print(f"The database was restored from {options.file}.")
        else:
            with closing(Store()) as store:
                if options.command == "purge":
                    number = purge(store, options.older_than_days)
                    print(f"{number:,} rows were deleted.")
                else:
                    print(f"{store.database.where} is up to date.")
    except StoreError as error:
        parser.error(str(error))
    return 0


def _days(text: str) -> float:
    days = float(text) if text.replace(".", "", 1).isdigit() else -1.0
    if days < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of days")
    return days


if __name__ == "__main__":
    sys.exit(main())
