"""How far a download has come."""

from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple
from core.config import RunConfig


@dataclass(frozen=True)
class Download:
    """How far a download has come."""

    done_bytes: int
    total_bytes: int
