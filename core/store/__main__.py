"""Look after what is remembered: python -m core.store

The database is that of DATABASE_URL, else the file in data/.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from core.store import maintenance
from core.store.codec import StoreError
from core.store.store import Store


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, not with the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command says. Exits with 2 where that can't be."""
    parser = Parser(prog="python -m core.store", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("backup", "write all to FILE, also while the app runs"),
        ("restore", "fill an empty database from FILE"),
    ):
        command = commands.add_parser(name, help=what)
        command.add_argument("file", type=Path, metavar="FILE")
    commands.add_parser("upgrade", help="bring the database to this version of the app")
    command = commands.add_parser("purge", help="delete what is old")
    command.add_argument("--older-than-days", type=_days, required=True, metavar="N")
    given = parser.parse_args(arguments)
    try:
        print(_do(given))
    except StoreError as error:
        parser.error(str(error))
    return 0


def _do(given: argparse.Namespace) -> str:
    """What was done, in a line."""
    if given.command == "backup":
        return f"{maintenance.backup(None, given.file):,} rows are in {given.file}."
    if given.command == "restore":
        return f"{maintenance.restore(None, given.file):,} rows were restored."
    store = Store()
    try:
        if given.command == "purge":
            number = maintenance.purge(store, given.older_than_days)
            return f"{number:,} rows were deleted."
        return f"{store.database.where} is up to date."
    finally:
        store.close()


def _days(text: str) -> float:
    days = float(text) if text.replace(".", "", 1).isdigit() else -1.0
    if days < 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of days")
    return days


if __name__ == "__main__":
    sys.exit(main())
