"""What was measured on other machines: core/reference/*.json, written by core.bench.

It is shown beside what is measured here, always with its device and its date.
"""

import json
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

FOLDER = Path(__file__).parents[1] / "reference"
FORMAT = 3  # of the files; raised when their content changes its meaning


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

    def section(self, name: str, kind: type[T]) -> tuple[list[T], str]:
        """The results of a section, of that type, and what is wrong with them.

        The second is a sentence, empty where the results are whole, or not in it.
        """
        try:
            return [from_json(kind, each) for each in self.figures.get(name, [])], ""
        except (AttributeError, KeyError, TypeError, ValueError):
            return [], f"The {name} of {self.label} are damaged: left out."


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


def from_json(kind: Any, value: Any) -> Any:
    """What `asdict` and JSON have made `value` of, by its type hints.

    Raises AttributeError, KeyError, TypeError or ValueError where it is no such value.
    Readings, tuple[float, ...], are never below 0, and there is at least one, but where
    a result has none by default. Where a hint names a class, the value may be of one
    that is derived from it, which its fields tell.
    """
    of, arguments = get_origin(kind), get_args(kind)
    if of is Annotated:
        return from_json(arguments[0], value)
    if is_dataclass(kind):
        kind = _fitting(kind, value)
        hints = get_type_hints(kind, include_extras=True)
        may_be_empty = {each.name for each in fields(kind) if each.default == ()}
        given = {
            name: from_json(hints[name], each)
            for name, each in value.items()
            if each != [] or name not in may_be_empty
        }
        return kind(**given)
    if hasattr(kind, "_fields"):  # a NamedTuple, of which JSON makes a list
        pairs = zip(get_type_hints(kind).values(), value, strict=True)
        return kind._make(from_json(inner, each) for inner, each in pairs)
    if of is UnionType:
        (kind,) = set(arguments) - {NoneType}
        return None if value is None else from_json(kind, value)
    if of is dict:
        return {name: from_json(arguments[1], each) for name, each in value.items()}
    if of is tuple:
        if arguments == (float, ...) and (not value or min(value) < 0):
            raise ValueError("there must be readings")
        kinds = arguments[:1] * len(value) if ... in arguments else arguments
        pairs = zip(kinds, value, strict=True)
        return tuple(from_json(inner, each) for inner, each in pairs)
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"{value} is no {kind.__name__}")
    return value


def _fitting(kind: Any, value: dict[str, Any]) -> Any:
    """The class, or the one derived from it that has the value's fields."""
    return next(
        (
            each
            for each in (kind, *kind.__subclasses__())
            if value.keys() <= {field.name for field in fields(each)}
        ),
        kind,
    )


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return "it is no JSON"
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) if isinstance(error, ValueError | OSError) else "it is damaged"
