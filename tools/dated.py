"""List the texts whose date is older than a year, and which may have aged.

    python -m tools.dated           # path, line, and text of each
    python -m tools.dated --days 90

A text that may age has a date, such as "November 24, 2026", "November 2026", or
2026-11-24. The exit status is 1 if a text is older.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("README.md", "pyproject.toml")
FOLDERS = ("content", "core", "deploy", "docs", "home", "pages", "to_device", "tools")
KINDS = (".md", ".py", ".toml", ".txt")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
DATE = re.compile(
    rf"\b({'|'.join(MONTHS)}) (?:(\d{{1,2}}), )?(20\d\d)\b"
    r"|\b(20\d\d)-([01]\d)-([0-3]\d)(?!\d)"
)


def dates(text: str) -> Iterator[tuple[int, date]]:
    """The number of each line that has a date, with this date."""
    for number, line in enumerate(text.splitlines(), 1):
        for month, day, year, *iso in DATE.findall(line):
            if year:
                yield number, date(int(year), MONTHS.index(month) + 1, int(day or 1))
            else:
                yield number, date(*map(int, iso))


def older_than(days: int, root: Path = ROOT) -> Iterator[str]:
    """Each dated line that is older, as "path:line: text"."""
    files = [root / place for place in PLACES]
    files += [file for folder in FOLDERS for file in (root / folder).rglob("*")]
    last = date.today() - timedelta(days)
    for file in sorted(file for file in files if file.suffix in KINDS):
        if not file.is_file():
            continue
        text = file.read_text("utf-8")
        lines = text.splitlines()
        for number, day in dates(text):
            if day < last:
                line = lines[number - 1].strip()
                yield f"{file.relative_to(root)}:{number}: {line}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.dated",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--days", type=int, default=365, help="default: 365")
    old = list(older_than(parser.parse_args().days))
    print(*old, sep="\n")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main())
