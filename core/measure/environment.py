"""What a measured number has to be read with."""

from datetime import UTC, datetime
from typing import Any

Environment = dict[str, Any]  # see core.devices.environment


def now() -> str:
    """The date that stands with a figure: ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
