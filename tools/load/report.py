"""What a lesson came to, as a table and as plain data."""

from dataclasses import asdict
from statistics import median
from typing import Any

from tools.load.lesson import Lesson
from tools.load.record import overtaken, percentiles

WAITS = ("page", "click", "look", "between_looks", "browser_page", "browser_click")
TRACEBACK = "Traceback (most recent call last)"
MEGABYTE = 2**20


def figures(lesson: Lesson, log: str = "") -> dict[str, Any]:
    """All that was measured: seconds, bytes, cores; what is unknown is None.

    `log` is what the server wrote.
    """
    alone = lesson.alone.samples_per_second
    rounds, before = [], []
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
        "tracebacks": log.count(TRACEBACK),
    }


def complaints(found: dict[str, Any]) -> list[str]:
    """What went wrong, in sentences; none where all were served, and in order."""
    told = [f"alone: {sentence}" for sentence in found["alone"]["errors"]]
    for number, each in enumerate(found["rounds"], 1):
        told += [f"round {number}: {s}" for s in each["errors"] + each["overtaken"]]
        if missing := found["plan"]["people"] - each["served"]:
            told.append(f"round {number}: {missing} were not served.")
    if found["tracebacks"]:
        told.append(f"The server's log has {found['tracebacks']} tracebacks.")
    return told


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
    return "\n".join(lines + complaints(found))


def _row(label: str, cells: list[str]) -> str:
    return f"{label:<28}" + "".join(f"{cell:>22}" for cell in cells)
