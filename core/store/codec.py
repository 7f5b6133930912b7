"""Values to text and back: JSON with a version, never a pickle.

A dataclass of ours is kept with its address, "core.config:RunConfig", and read back by
its type hints. Curves are many numbers, so they are kept as packed bytes.
"""

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from itertools import chain
from pkgutil import resolve_name
from typing import Any

from core.errors import ExplainedError
from core.measure.records import from_json
from core.results import LossPoint

VERSION = 1  # of the texts; raised, with a migration, when their form changes


class StoreError(ExplainedError):
    """What is wrong with what is kept, and what to do: a sentence for the person."""


class DamagedError(StoreError):
    """A row that this version of the app can't read."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} was kept by another version of this app, and this one can't "
            "read it. Make it again."
        )


def dumps(value: Any) -> str:
    """The value as text. TypeError for what is no plain data, as a tensor is not."""
    return json.dumps({"version": VERSION, "value": _tagged(value)}, default=_bytes)


def loads(text: str, what: str) -> Any:
    """The value that `dumps` made the text of; `what` begins the sentence if it can't.

    Raises DamagedError.
    """
    try:
        kept = json.loads(text, object_hook=_unpacked)
        if kept["version"] != VERSION:
            raise ValueError(f"is of version {kept['version']}, not {VERSION}")
        return _untagged(kept["value"])
    except (ImportError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise DamagedError(what) from error


def _tagged(value: Any) -> Any:
    """JSON has one kind of sequence, and no classes: these are wrapped with a name."""
    if is_dataclass(value):
        kind = type(value)
        name = f"{kind.__module__}:{kind.__qualname__}"
        if not name.startswith("core."):
            raise TypeError(f"{name} is not of this app")
        return {"class": name, "value": asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return {"tuple": [_tagged(each) for each in value]}
    if isinstance(value, list):
        return [_tagged(each) for each in value]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("the keys of a dict must be texts")
        return {"dict": {name: _tagged(each) for name, each in value.items()}}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        return from_json(_class(value["class"]), value["value"])
    if "tuple" in value:
        return tuple(_untagged(each) for each in value["tuple"])
    return {name: _untagged(each) for name, each in value["dict"].items()}


def _class(name: str) -> Any:
    """The dataclass at the address; nothing that is not ours is ever imported."""
    if not name.startswith("core."):
        raise ValueError(f"{name} is not of this app")
    found = resolve_name(name)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise TypeError(f"{name} is no dataclass")
    return found


def _bytes(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} is no plain data")


def _unpacked(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


def pack(points: Sequence[LossPoint]) -> bytes:
    """A curve: three little-endian float64 a point, in order, compressed by zlib.

    float64, so that a run reads the same to the last digit after a restart.
    """
    numbers = list(chain.from_iterable(points))
    return zlib.compress(struct.pack(f"<{len(numbers)}d", *numbers))


def unpack(packed: Iterable[bytes], what: str) -> tuple[LossPoint, ...]:
    """The points of a curve that was kept in parts. Raises DamagedError as `loads`."""
    found = []
    try:
        for part in packed:
            data = zlib.decompress(part)
            for step, seconds, loss in struct.iter_unpack("<3d", data):
                found.append(LossPoint(int(step), seconds, loss))
    except (ValueError, struct.error, zlib.error) as error:
        raise DamagedError(what) from error
    return tuple(found)
