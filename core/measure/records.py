"""What was measured on other machines: core/reference/*.json, written by core.bench.

It is shown beside what is measured here, always with its device and its date.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "reference"
FORMAT = 1  # of the files; raised when their content changes its meaning


@dataclass(frozen=True)
class Record:
    """A benchmark of another machine."""

    name: str  # of the device
    date: str  # ISO 8601
    figures: dict[str, Any]  # as core.bench prints them

    @property
    def label(self) -> str:
        """Where and when: what stands beside every number of it."""
        return f"{self.name}, recorded {self.date[:10]}"


def records(folder: Path = FOLDER) -> tuple[list[Record], list[str]]:
    """All records in the folder, and a sentence for each file that can't be used."""
    found, notices = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            figures = json.loads(path.read_text(encoding="utf-8"))
            if figures["format"] != FORMAT:
                raise ValueError(f"is of format {figures['format']}, not {FORMAT}")
            environment = figures["environment"]
            found.append(Record(environment["device_name"], figures["date"], figures))
        except (OSError, KeyError, TypeError, ValueError) as error:
            notices.append(f"The record {path.name} is left out: {_why(error)}.")
    return found, notices


def write(figures: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Keep what core.bench has measured, in a file named after the device."""
    name = figures["environment"]["device_name"]
    words = "".join(c if c.isalnum() else " " for c in name.lower()).split()
    folder.mkdir(exist_ok=True)
    path = folder / f"{'-'.join(words)}.json"
    text = json.dumps({"format": FORMAT, **figures}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "it is no JSON"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) if isinstance(error, ValueError | OSError) else "it is damaged"
