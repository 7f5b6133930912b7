"""The crossover map: from which size on the second contender is worth it."""

import math
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.compare.candidates import Candidate
from core.compare.results import Cell, Crossover, equal_points
from core.jobs.job import Job
from core.measure.records import Record
from core.ui import controls, downloads, figures
from core.ui.charts import compare as charts
from core.ui.compare import records
from core.ui.job_panel import JobPanel, reported

PANEL = JobPanel("core.compare.crossover:measure", "The map", "measure_map")
BUDGETS = (10, 30, 60, 120)  # seconds


def draw(pair: tuple[Candidate, Candidate], recorded: Sequence[Record]) -> None:
    """The budget, the button, the map; then what was recorded."""
    seconds = controls.budget("budget", BUDGETS)
    PANEL.buttons("Measure the map", (pair, seconds))
    PANEL.follow(
        result,
        ":material/grid_on: The map appears here, cell by cell, with the line where "
        "both are equally fast.",
    )
    for label, other in records.of(recorded, "crossovers"):
        with st.expander(f"Recorded: {label}"):
            heat_map(other.cells, other.candidates)
            caption(other)


def result(job: Job) -> None:
    """The map as far as it is measured."""
    done: Crossover | None = job.value
    cells = list(done.cells) if done else reported(job, Cell)
    candidates: tuple[Candidate, Candidate] = job.arguments[0]
    if not job.ended:
        st.info(f"Measuring, coarse to fine: {len(cells)} cells so far.")
    if not cells:
        if done is not None:
            st.warning("The time was over before the first cell. Give it more.")
        return
    heat_map(cells, candidates)
    if done is not None:
        caption(done)
        downloads.both("crossover", done.rows())


def heat_map(cells: Sequence[Cell], candidates: tuple[Candidate, Candidate]) -> None:
    """The heat map with the line where both are equal, and what it says."""
    first, second = candidates
    rows = [
        {
            "batch": math.log2(cell.batch_size),
            "width": math.log2(cell.width),
            "batch_size": cell.batch_size,
            "hidden": cell.width,
            "log2": math.log2(cell.speedup.median),
            "label": f"{cell.speedup.median:.2g}",
            "interval": "{:.2g}× to {:.2g}×".format(*cell.speedup.interval),
        }
        for cell in cells
    ]
    table = pd.DataFrame(rows)
    points = pd.DataFrame(
        [(math.log2(x), math.log2(y)) for x, y in equal_points(cells)],
        columns=["x", "y"],
    )
    # One line where each row of the map is crossed at most once; else points alone.
    in_rows = points[points["y"].isin(table["width"])]
    points["joined"] = not in_rows["y"].duplicated().any()
    st.altair_chart(
        charts.crossover(table, points, candidates),
        alt=f"Speed-up of {second.name} over {first.name}, over batch size and width",
    )
    st.markdown(in_words(cells, candidates))


def in_words(cells: Sequence[Cell], candidates: tuple[Candidate, Candidate]) -> str:
    """Who wins how many cells, and where the first contender is to be preferred."""
    first, second = candidates
    winners = [cell.speedup.winner for cell in cells]
    text = (
        f"A number says how many times as fast **{second.name}** is as "
        f"**{first.name}**; the diamonds stand where they are equal. Of {len(cells)} "
        f"cells {second.name} wins {winners.count(1)}, {first.name} "
        f"{winners.count(0)}; {winners.count(None)} are too close to call."
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
        f"{text} Where {name} wins, {stay}: it is faster and cheaper. The largest "
        f"such cell is batch size {largest.batch_size:,} with {largest.width:,} hidden "
        "units."
    )


def caption(done: Crossover) -> None:
    """How it was measured, and why cells are missing."""
    missing = done.planned - len(done.cells)
    why = done.stopped or f"The {done.budget_seconds:.0f} seconds were over."
    left_out = f"{missing} of {done.planned} cells were not measured. {why} "
    figures.caption(
        f"{left_out if missing else ''}A training step of 784-width-10, data on the "
        "device; each cell is the median ratio of "
        f"n = {done.cells[0].speedup.n} pairs of readings after a warm-up.",
        done,
    )
