"""The crossover map: from which size on the second contender is worth it."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import dist, log2
from typing import Any

import pandas as pd
import streamlit as st

from core.compare.candidates import Candidate, candidates
from core.compare.results import (
    BATCH_SIZES,
    WIDTHS,
    Cell,
    Crossover,
    equal_points,
)
from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.records import Record
from core.ui import controls, downloads, figures, guess
from core.ui.charts import compare as charts
from core.ui.classroom import held
from core.ui.compare import race, records
from core.ui.job_panel import JobPanel, reported, slot

PANEL = JobPanel("core.compare.crossover:measure", "The map", "measure_map")
BUDGETS = (10, 30, 60, 120)  # seconds
PLANNED = len(WIDTHS) * len(BATCH_SIZES)
EXAMPLE = tuple(  # a tie where a guess is asked for, so that it tells nobody
    Cell(width, size, tuple(ratio * each for each in (0.9, 1.0, 1.1)), (1.0,) * 3)
    for width in WIDTHS[::2]
    for size in BATCH_SIZES[::2]
    for ratio in [max(1.0, 2 ** ((log2(width * size) - 14) / 4))]
)
Place = tuple[float, float]  # batch size and width, as powers of two
COLUMNS = (
    *("kind", "batch", "width", "left", "right", "bottom", "top", "log2"),
    *("label", "interval", "batch_size", "hidden", "joined"),
)


def draw(machine: Machine, recorded: Sequence[Record]) -> None:
    """The contenders, the budget, the button, the map; then what was recorded."""
    with controls.row():
        pair = race.pair(candidates(held.machine(machine)))
        seconds = controls.budget("budget", BUDGETS)
        PANEL.buttons("Measure the map", (pair, seconds))
    with controls.row():
        guessed = guess.ask(
            "map_guess",
            f"which one is faster for the smallest model, {WIDTHS[0]} units wide, with "
            f"batches of {BATCH_SIZES[0]}?",
            [*(each.name for each in pair), guess.CLOSE],
            ran=PANEL.ran,
        )
    if not PANEL.follow(lambda job: result(job, guessed)):
        with figures.example("Measure the map"):
            _map(EXAMPLE, pair)
    for label, other in records.of(recorded, "crossovers"):
        with st.expander(f"Recorded: {label}"):
            _draw(other.cells, other.candidates, label)
            caption(other)


def result(job: Job, guessed: str | None) -> None:
    """The map as far as it is measured."""
    done: Crossover | None = job.value
    cells = list(done.cells) if done else reported(job, Cell)
    if done is not None and not cells:
        st.warning("Time ran out before the first cell was measured. Give it more.")
    if not job.ended:
        text = f"Coarse to fine: {len(cells)} of {PLANNED} cells"
        slot(text, len(cells) / PLANNED)
    if guess.missing(guessed):
        return
    _judge(cells, job.arguments[0], guessed)
    _draw(cells, job.arguments[0])
    if done is not None and cells:
        caption(done)
        downloads.both("crossover", done.rows())


def _judge(
    cells: Sequence[Cell], pair: tuple[Candidate, Candidate], guessed: str | None
) -> None:
    """Who is faster in the corner that was asked for, beside who was to be."""
    names, corner = [each.name for each in pair], (WIDTHS[0], BATCH_SIZES[0])
    for cell in cells:
        if (cell.width, cell.batch_size) == corner:
            won = cell.speedup.winner
            right = guess.CLOSE if won is None else names[won]
            found = f"**{right}** is faster" if won is not None else "it is a tie"
            among = (*names, guess.CLOSE)
            text = f"In the smallest corner {found}."
            guess.judge(text, guessed, right, say=str, among=among)


def _draw(
    cells: Sequence[Cell], candidates: tuple[Candidate, Candidate], where: str = ""
) -> None:
    """The map, and beside it what it says."""
    first, second = candidates
    chart, beside = st.columns([6, 4], gap="medium")
    with chart:
        _map(cells, candidates, where)
    with beside:
        st.markdown(
            in_words(cells, candidates)
            if cells
            else "**Nothing is measured yet.** The map fills cell by cell: first the "
            "corners, then what lies between."
        )
        st.markdown(
            f"A number says how many times as fast **{second.name}** is as "
            f"**{first.name}**. Pale cells are estimated from the nearest measured "
            "one, and hatched ones are too close to call. At the diamonds, both are "
            "equally fast."
        )


def _map(
    cells: Sequence[Cell], candidates: tuple[Candidate, Candidate], where: str = ""
) -> None:
    first, second = (each.name for each in candidates)
    st.vega_lite_chart(
        pd.DataFrame(rows(cells), columns=COLUMNS),
        charts.crossover(candidates),
        key=f"map_{where}",
        alt=f"Speed-up of {second} over {first}, over batch and width",
    )


def rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """What charts.crossover draws of them."""
    known = {(log2(c.batch_size), log2(c.width)): log2(c.speedup.median) for c in cells}
    found = [
        _square("blank", *place, log2=known[_nearest(place, known)] if known else 0.0)
        for place in product(map(log2, BATCH_SIZES), map(log2, WIDTHS))
        if place not in known
    ]
    for cell in cells:
        at, ratio = (log2(cell.batch_size), log2(cell.width)), cell.speedup.median
        tells: dict[str, Any] = {
            "log2": known[at],
            "batch_size": cell.batch_size,
            "hidden": cell.width,
            "label": f"{ratio:.2g}×" if ratio >= 0.1 else "<0.1×",
            "interval": "{:.2g}× to {:.2g}×".format(*cell.speedup.interval),
        }
        found.append(_square("cell", *at, **tells))
        if cell.speedup.winner is None:
            found += _hatching(*at)
    points = [(log2(x), log2(y)) for x, y in equal_points(cells)]
    # One line where each row of the map is crossed at most once; else points alone.
    in_rows = [y for _, y in points if y in {width for _, width in known}]
    joined = len(in_rows) == len(set(in_rows))
    return found + [
        {"kind": "equal", "left": x, "bottom": y, "joined": joined} for x, y in points
    ]


def _nearest(place: Place, known: Iterable[Place]) -> Place:
    return min(known, key=lambda each: dist(each, place))


def _square(kind: str, batch: float, width: float, **more: Any) -> dict[str, Any]:
    sides = {"left": batch - 0.5, "right": batch + 0.5}
    sides |= {"bottom": width - 0.5, "top": width + 0.5}
    return {"kind": kind, "batch": batch, "width": width, **sides, **more}


def _hatching(batch: float, width: float) -> list[dict[str, Any]]:
    """Three lines across a cell, from the lower left to the upper right."""
    lines = []
    for shift in (-0.5, 0.0, 0.5):
        whole = _square("tie", batch, width)
        whole["left"] += max(shift, 0.0)
        whole["right"] += min(shift, 0.0)
        whole["bottom"] -= min(shift, 0.0)
        whole["top"] -= max(shift, 0.0)
        lines.append(whole)
    return lines


def in_words(cells: Sequence[Cell], candidates: tuple[Candidate, Candidate]) -> str:
    """Who wins how many cells, and where the first contender is to be preferred."""
    first, second = candidates
    winners = [cell.speedup.winner for cell in cells]
    text = (
        f"**Of {len(cells)} cells {second.name} wins {winners.count(1)}, {first.name} "
        f"{winners.count(0)}; {winners.count(None)} are too close to call.**"
    )
    on_cpu = [index for index in (0, 1) if candidates[index].device == "cpu"]
    index = on_cpu[0] if on_cpu else 0
    kept = [c for c, winner in zip(cells, winners, strict=True) if winner == index]
    if not kept:
        return text
    largest = max(kept, key=lambda cell: cell.width * cell.batch_size)
    name = candidates[index].name
    stay = "stay on the CPU" if len(on_cpu) == 1 else f"take {name}"
    return (
        f"{text} Where {name} wins, {stay}: it is faster there. The largest "
        f"such cell is batch size {largest.batch_size:,} with {largest.width:,} hidden "
        "units."
    )


def caption(done: Crossover) -> None:
    """How it was measured, and why cells are missing."""
    missing = done.planned - len(done.cells)
    why = done.stopped or f"The {done.budget_seconds:.0f} seconds ran out."
    left_out = f"{missing} of {done.planned} cells were not measured. {why} "
    figures.caption(
        f"{left_out if missing else ''}A training step of 784-width-10, data on the "
        "device; each cell is the median ratio of "
        f"n = {done.cells[0].speedup.n} pairs of readings after a warm-up.",
        done,
    )
