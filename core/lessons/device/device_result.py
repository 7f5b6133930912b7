"""What the Device page shows of each device: plain data, without torch."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DeviceDetails:
    """Facts about a device that stay the same while the app runs."""

    device: str  # "cuda:0"
    device_name: str
    backend: str
    total_bytes: int | None
    details: dict[str, Any]  # all else, with the keys of [cards.labels] in words.toml


@dataclass(frozen=True)
class DeviceLoad:
    """How full and how busy a device is now. A figure that is unknown is None."""

    device: str
    free_bytes: int | None
    total_bytes: int | None
    busy_percent: int | None = None  # share of the last moments in which a kernel ran
    celsius: int | None = None

    @property
    def used_bytes(self) -> int | None:
        if self.free_bytes is None or self.total_bytes is None:
            return None
        return self.total_bytes - self.free_bytes
