"""Figures as flat rows for CSV and JSON; each result type has a method `rows`."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from statistics import median
from typing import Any

from core.measure.environment import Environment
from to_device.names import SIMULATED

Row = dict[str, Any]


def row(
    subject: str,
    seconds: Sequence[float],
    environment: Environment,
    date: str,
    **more: Any,
) -> Row:
    """A row for one measurement: the median and the range of its n repeats."""
    return {
        "what": subject,
        "n": len(seconds),
        "median_seconds": median(seconds),
        "least_seconds": min(seconds),
        "most_seconds": max(seconds),
        **more,
        **asdict(environment),
        "date": date,
    }


def counted(subject: str, environment: Environment, date: str, **counts: Any) -> Row:
    """A row of counts on the simulated accelerator.

    `environment` is the CPU's. The row keeps its threads, its versions, and its system,
    but names the simulated accelerator as the device.
    """
    where = asdict(environment) | {
        "device": SIMULATED,
        "device_name": "Simulated accelerator",
        "backend": "Simulated",
    }
    return {"what": subject, **counts, **where, "date": date}


def pick(source: object, columns: str) -> Row:
    """Attributes of `source` as a row; `columns` has their names, split by spaces.

    "num_workers=workers" puts the attribute workers into a column num_workers.
    """
    pairs = (column.partition("=") for column in columns.split())
    return {name: attrgetter(other or name)(source) for name, _, other in pairs}
