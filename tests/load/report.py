"""What a lesson came to, as a table and as plain data."""

from dataclasses import asdict
from statistics import median
from typing import Any

from tests.load.lesson import Lesson
from tests.load.record import overtaken, percentiles

WAITS = ("page", "click", "look", "browser_page", "browser_click")
MEGABYTE = 2**20


def figures(lesson: Lesson) -> dict[str, Any]:
    """All that was measured: seconds, bytes, cores; what is unknown is None."""
    alone = lesson.alone.samples_per_second
    rounds, before = [], lesson.alone.turns
    for record, meter in lesson.rounds:
        loaded = record.samples_per_second
        known = bool(alone and loaded)
        rounds.append(
            {
                "seconds": meter.seconds,
                "served": len(record.served),
                "errors": record.errors,
                "overtaken": overtaken(record.turns, before),
                **{name: percentiles(getattr(record, name)) for name in WAITS},
                "samples_per_second": median(loaded) if loaded else None,
                "slowdown": median(alone) / median(loaded) if known else None,
                "memory_before": meter.before or None,
                "memory_peak": meter.peak or None,
                "memory_after": meter.after or None,
                "cores_busy": meter.cpu,
                "client_lag": percentiles(meter.lags),
            }
        )
        before = record.turns
    return {
        "plan": asdict(lesson.plan),
        "alone": {
            "samples_per_second": alone,
            "errors": lesson.alone.errors,
            **{name: percentiles(getattr(lesson.alone, name)) for name in WAITS},
        },
        "rounds": rounds,
    }


def went_well(found: dict[str, Any]) -> bool:
    """Whether everybody was served, in order, without an error."""
    return not found["alone"]["errors"] and all(
        each["served"] == found["plan"]["people"]
        and not each["errors"]
        and not each["overtaken"]
        for each in found["rounds"]
    )


def table(found: dict[str, Any]) -> str:
    """A column a round, with the sentences of what went wrong under it."""
    plan, rounds = found["plan"], found["rounds"]
    lines = [
        f"{plan['people']} people, {plan['browsers']} of them with a real browser, "
        f"arriving over {plan['arrival_seconds']:.0f} s",
        _row("", [f"round {n}" for n in range(1, len(rounds) + 1)]),
    ]

    def row(label: str, name: str, form) -> None:
        values = [each[name] for each in rounds]
        lines.append(_row(label, ["–" if v is None else form(v) for v in values]))

    row("served", "served", lambda n: f"{n} of {plan['people']}")
    row("errors", "errors", lambda told: str(len(told)))
    row("overtaken", "overtaken", lambda told: str(len(told)))
    row("took", "seconds", "{:.0f} s".format)
    for name in (*WAITS, "client_lag"):
        label = name.replace("_", " ")
        row(f"{label}, p50 p95 max", name, "{p50:.2f} {p95:.2f} {max:.2f} s".format_map)
    for name in ("before", "peak", "after"):
        row(f"memory {name}", f"memory_{name}", lambda b: f"{b / MEGABYTE:.0f} MB")
    row("samples/s, median", "samples_per_second", "{:,.0f}".format)
    row("slower than alone", "slowdown", "{:.2f} times".format)
    for kind in rounds[0]["cores_busy"] if rounds else ():
        cores = [f"{each['cores_busy'][kind]:.2f}" for each in rounds]
        lines.append(_row(f"cores busy: {kind}", cores))
    alone = found["alone"]["samples_per_second"]
    if alone:
        spread = f"{min(alone):,.0f} to {max(alone):,.0f}, n = {len(alone)}"
        lines.append(f"Alone: {median(alone):,.0f} samples/s ({spread}).")
    told = [*found["alone"]["errors"]]
    for number, each in enumerate(rounds, 1):
        wrong = each["errors"] + each["overtaken"]
        told += [f"round {number}: {sentence}" for sentence in wrong]
    return "\n".join(lines + told)


def _row(label: str, cells: list[str]) -> str:
    return f"{label:<28}" + "".join(f"{cell:>22}" for cell in cells)
