"""Converts values to text and back: JSON with a version, never a pickle.

The app's dataclasses are stored with a name from core.registry, "settings", and read
with their type hints. Curves are packed bytes.

What another process answers names no class: `from_json` gets the type from its caller.
"""

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any

from core import registry
from core.results import LossPoint
from to_device.errors import ExplainedError, drawable

VERSION = 1  # raised, with a migration, when the format changes


class StoreError(ExplainedError):
    """A sentence on what is wrong with the database or a row, and what to do."""


class DamagedError(StoreError):
    def __init__(self, subject: str) -> None:
        super().__init__(
            f"{subject} was saved by another version of this app, so this version "
            "can't read it. You'll have to make it again."
        )


def dumps(value: Any) -> str:
    """The value as text. Raises TypeError if it isn't plain data but, say, a tensor."""
    return json.dumps({"version": VERSION, "value": _tagged(value)}, default=_bytes)


def loads(text: str, subject: str) -> Any:
    """The value of a text that `dumps` wrote. Raises DamagedError about `subject`."""
    try:
        stored = json.loads(text, object_hook=_unpacked)
        if stored["version"] != VERSION:
            raise ValueError(f"has version {stored['version']}, not {VERSION}")
        return _untagged(stored["value"])
    except Exception as error:  # a class may raise any error for a field it lacks
        raise DamagedError(subject) from error


def to_json(value: Any) -> bytes:
    """The value for `from_json`. Raises TypeError if it isn't plain data.

    Plain data is dataclasses, lists, tuples, dicts with texts as keys, bytes, texts,
    numbers, and None.
    """
    return json.dumps(value, default=_fields_or_bytes).encode()


def from_json(data: bytes, kind: Any, finite: bool = False) -> Any:
    """The value of type `kind` that `to_json` wrote, whoever has written `data`.

    `kind` is a type hint; with Any, the value is what json.loads returns. The texts in
    a value of any other type can be drawn. With `finite`, no number may be infinite or
    NaN. Raises ValueError if the data is no such value.
    """
    try:
        value = json.loads(data)
        if finite:
            _check_finite(value)
        return as_type(value, kind)
    except Exception as error:  # cattrs and the classes raise any error
        # The cause would keep the data in memory, and its text may have any length.
        raise ValueError(f"not a {kind}: {type(error).__name__}") from None


def as_type(value: Any, kind: Any) -> Any:
    """The value of type `kind` for a value from json.loads. Raises any exception."""
    return value if kind is Any else _strict_converter().structure(value, kind)


def _check_finite(value: Any) -> None:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            _check_finite(part)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is not finite")


def joined(texts: Iterable[str]) -> str:
    """The text of a tuple, made from the texts of its values."""
    values = [json.loads(text)["value"] for text in texts]
    return json.dumps({"version": VERSION, "value": {"tuple": values}})


def retagged(text: str, rename: Callable[[str], str]) -> str:
    """A text of `dumps` with other names for its classes. Raises ValueError."""

    def walk(value: Any) -> Any:
        match value:
            case list():
                return [walk(item) for item in value]
            case {"class": str(name)}:
                return value | {"class": rename(name)}
            case {"tuple": items}:
                return {"tuple": walk(items)}
            case {"dict": dict(items)}:
                return {"dict": {name: walk(item) for name, item in items.items()}}
        return value

    stored = json.loads(text)
    if not isinstance(stored, dict):
        raise ValueError("this is no text of `dumps`")
    return json.dumps(stored | {"value": walk(stored.get("value"))})


def _tagged(value: Any) -> Any:
    """Wrap tuples, dicts, and dataclasses in a dict that says which of these they are.

    JSON itself would read a tuple as a list, and has no classes.
    """
    if is_dataclass(value):
        name = registry.name_of_class(type(value))
        return {"class": name, "value": asdict(value)}  # type: ignore[arg-type]
    if isinstance(value, tuple):
        return {"tuple": [_tagged(item) for item in value]}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise TypeError("a dict's keys must be strings")
        return {"dict": {name: _tagged(item) for name, item in value.items()}}
    return value


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        kind = registry.class_of(value["class"])
        return _converter().structure(value["value"], kind)
    if "tuple" in value:
        return tuple(map(_untagged, value["tuple"]))
    return {name: _untagged(item) for name, item in value["dict"].items()}


@cache
def _converter() -> Any:
    """What `loads` needs, but not `dumps`.

    cattrs is imported here, since it may be missing where `core.bench` writes.
    """
    from cattrs import Converter

    return Converter(detailed_validation=False)


@cache
def _strict_converter() -> Any:
    """Like `_converter`, but it accepts no other fields, and turns no value into text.

    The plain converter would call str, int, or bytes with whatever it finds.
    """
    from cattrs import Converter

    converter = Converter(detailed_validation=False, forbid_extra_keys=True)
    hooks: dict[type, Callable] = {str: _text, bytes: _decoded, float: _number}
    hooks |= dict.fromkeys((int, bool, type(None)), _exact)
    for kind, hook in hooks.items():
        converter.register_structure_hook(kind, hook)
    return converter


def _exact(value: Any, kind: type) -> Any:
    if type(value) is not kind:  # True is an instance of int
        raise TypeError(f"not {kind.__name__}")
    return value


def _text(value: Any, _: type) -> str:
    return drawable(_exact(value, str))


def _number(value: Any, _: type) -> float:
    return float(value if type(value) is int else _exact(value, float))


def _decoded(value: Any, _: type) -> bytes:
    (text,) = _exact(value, dict).values()
    return base64.b64decode(text, validate=True)


def _bytes(value: Any) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} is not plain data")


def _fields_or_bytes(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return _bytes(value)


def _unpacked(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value


def pack(points: Sequence[LossPoint]) -> bytes:
    """A curve as packed bytes: three little-endian float64 a point, compressed by zlib.

    With float64, a run's losses are the same to the last digit after a restart.
    """
    numbers = list(chain.from_iterable(points))
    return zlib.compress(struct.pack(f"<{len(numbers)}d", *numbers))


def unpack(packed: Iterable[bytes], subject: str) -> tuple[LossPoint, ...]:
    """The points of a curve that was stored in parts. Raises DamagedError."""
    try:
        return tuple(
            LossPoint(int(step), seconds, loss)
            for part in packed
            for step, seconds, loss in struct.iter_unpack("<3d", zlib.decompress(part))
        )
    except (ValueError, struct.error, zlib.error) as error:
        raise DamagedError(subject) from error
