"""Figures as flat rows, for CSV and JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from core.measure.environment import Environment

Row = dict[str, Any]


def row(
    what: str,
    seconds: Sequence[float],
    environment: Environment,
    date: str,
    **more: Any,
) -> Row:
    """One measured thing; spread is the least and the most of n repeats."""
    return {
        "what": what,
        "n": len(seconds),
        "median_seconds": median(seconds),
        "least_seconds": min(seconds),
        "most_seconds": max(seconds),
        **more,
        **asdict(environment),
        "date": date,
    }
