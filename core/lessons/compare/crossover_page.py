"""The map of which device is faster at which size, as the Compare page shows it."""

from collections.abc import Sequence
from itertools import product
from math import dist, log2
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.compare.candidates import Pair
from core.lessons.compare.crossover_points import crossover_points
from core.lessons.compare.crossover_result import BATCH_SIZES, WIDTHS, Cell, Crossover
from core.lessons.compare.race_page import choose_pair, chosen_pair, pair_hues
from core.measure.environment import Machine
from core.ui import charts, controls, guess
from core.ui.charts import FONT_PIXELS, LATER, TALL, Chart, Palette
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab

BUDGETS = (10, 30, 60, 120)  # seconds
PLANNED = len(WIDTHS) * len(BATCH_SIZES)
SAME_SHADE = 2.0  # larger speedups have the same shade as a speedup of 2
COLUMNS = (
    *("kind", "batch", "width", "left", "right", "bottom", "top", "log2"),
    *("label", "interval", "batch_size", "hidden", "joined"),
)


class CrossoverLab(Lab):
    key = "measure_map"
    file = "crossover"
    job_name = "The map"
    asks_below = finding_above = needs_accelerator = True
    judged = "always"
    code = (("A step", "core.lessons.compare.crossover:training_step"),)

    def settings(self, machine: Machine) -> tuple:
        return choose_pair(machine), controls.budget("budget", BUDGETS)

    def asks(self, _: Machine, arguments: tuple | None) -> Guess:
        pair = arguments[0] if arguments else chosen_pair()
        question = self.words["question"].format(
            width=WIDTHS[0], batch_size=BATCH_SIZES[0]
        )
        names = [candidate.name for candidate in pair]
        return Guess("map_guess", question, [*names, guess.CLOSE])

    def progress(self, job: Job) -> tuple[str, float]:
        cells = len(reported(job, Cell))
        text = f"Measuring from coarse to fine: {cells} of {PLANNED} cells"
        return text, cells / PLANNED

    def gather(self, job: Job) -> Crossover:
        pair, budget = job.arguments
        cells = tuple(reported(job, Cell))
        return job.value or Crossover(pair, (), cells, PLANNED, budget, "", date="")

    def finding(self, crossover: Crossover) -> Finding | None:
        names = [candidate.name for candidate in crossover.candidates]
        for cell in crossover.cells:
            if (cell.width, cell.batch_size) == (WIDTHS[0], BATCH_SIZES[0]):
                options = names[0], guess.CLOSE, names[1]
                text = f"At the smallest size: {cell.speedup.sentence(*names)}"
                right = cell.speedup.answers(*options)
                return Finding(text, right, say=str, among=options)
        return None

    def chart(self, crossover: Crossover) -> None:
        if crossover.date and not crossover.cells:
            st.warning(self.words["out_of_time"])
        pair = crossover.candidates
        first, second = (candidate.name for candidate in pair)
        st.vega_lite_chart(
            pd.DataFrame(rows(crossover.cells), columns=COLUMNS),
            map_chart(pair),
            key=f"map_{self.suffix}",
            alt=f"Speedup of {second} over {first}, by batch size and width",
        )

    def lines(self, crossover: Crossover) -> None:
        pair, cells = crossover.candidates, crossover.cells
        first, second = (candidate.name for candidate in pair)
        st.markdown(in_words(cells, pair) if cells else self.words["nothing"])
        legend = self.words["legend"].format(first=first, second=second)
        if len(cells) < crossover.planned:
            legend += f" {self.words['pale']}"
        st.markdown(legend)

    def caption(self, crossover: Crossover) -> str | None:
        cells = crossover.cells
        if not cells:
            return None
        missing, text = crossover.planned - len(cells), ""
        if missing:
            out_of_time = self.words["ran_out"].format(crossover.budget_seconds)
            why = crossover.stopped or out_of_time
            text = self.words["left_out"].format(missing, crossover.planned, why)
        return text + self.words["how"].format(n=cells[0].speedup.n)


def rows(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """The data of `map_chart`: a row for each of its marks."""
    ratios = {
        (log2(cell.batch_size), log2(cell.width)): log2(cell.speedup.ratio)
        for cell in cells
    }
    marks = []
    for place in product(map(log2, BATCH_SIZES), map(log2, WIDTHS)):
        if place not in ratios:
            nearest = min(ratios, key=lambda other: dist(other, place), default=None)
            shade = ratios[nearest] if nearest else 0.0
            marks.append(_square("blank", *place, log2=shade))
    for cell, (place, ratio) in zip(cells, ratios.items(), strict=True):
        speedup = cell.speedup
        texts: dict[str, Any] = {
            "log2": ratio,
            "batch_size": cell.batch_size,
            "hidden": cell.width,
            "label": f"{speedup.ratio:.2g}×" if speedup.ratio >= 0.1 else "<0.1×",
            "interval": "{:.2g}× to {:.2g}×".format(*speedup.interval),
        }
        marks.append(_square("cell", *place, **texts))
        if speedup.winner is None:
            marks += _hatching(*place)
    points = crossover_points(cells)
    # A line joins the points only if it crosses each row of the map at most once.
    in_rows = [y for _, y in points if y in {width for _, width in ratios}]
    joined = len(in_rows) == len(set(in_rows))
    return marks + [
        {"kind": "equal", "left": x, "bottom": y, "joined": joined} for x, y in points
    ]


def _square(kind: str, batch: float, width: float, **more: Any) -> dict[str, Any]:
    sides = {"left": batch - 0.5, "right": batch + 0.5}
    sides |= {"bottom": width - 0.5, "top": width + 0.5}
    return {"kind": kind, "batch": batch, "width": width, **sides, **more}


def _hatching(batch: float, width: float) -> list[dict[str, Any]]:
    """Three lines across a cell, from the lower left to the upper right."""
    lines = [_square("tie", batch, width) for _ in range(3)]
    lines[0] |= {"right": batch, "bottom": width}  # across the upper left half
    lines[2] |= {"left": batch, "top": width}  # across the lower right half
    return lines


def in_words(cells: Sequence[Cell], pair: Pair) -> str:
    """How many cells each candidate wins, and the largest that the CPU wins.

    If no candidate is a CPU, the largest that the first candidate wins.
    """
    first, second = pair
    winners = [cell.speedup.winner for cell in cells]
    text = (
        f"**{second.name} wins {winners.count(1)} of {len(cells)} cells, and "
        f"{first.name} wins {winners.count(0)}. Too close to call: "
        f"{winners.count(None)}.**"
    )
    on_cpu = [index for index in (0, 1) if pair[index].device == "cpu"]
    index = on_cpu[0] if on_cpu else 0
    won = [c for c, winner in zip(cells, winners, strict=True) if winner == index]
    if not won:
        return text
    largest = max(won, key=lambda cell: cell.width * cell.batch_size)
    return (
        f"{text} The largest size at which {pair[index].name} wins is batch size "
        f"{largest.batch_size:,} with {largest.width:,} hidden units."
    )


@charts.live
def map_chart(colors: Palette, pair: Pair) -> Chart:
    """A heat map of the second candidate's speedup, by batch size and width.

    Draws `rows`, in which positions and sides are exponents of two. The kinds of rows:
    a "cell" was measured; a "blank" has a pale shade of the nearest cell's color; a
    "tie" is a hatching line in a tied cell; "equal" is a place where both
    candidates are equally fast.
    """
    first, second = (
        charts.mixed(hue, colors.ground, 0.5) for hue in pair_hues(pair, colors)
    )
    most = log2(SAME_SHADE)
    domain = [-most, 0, most]
    shade = charts.shades(
        "log2", first, colors.ground, second, domain=domain, clamp=True
    )
    powers: dict = {"labelExpr": "format(pow(2, datum.value), ',.0f')", "grid": False}
    sides = {
        side: channel(f"{column}:Q", axis=charts.ticks(map(log2, values), **powers))
        .title(title)
        .scale(domain=[log2(values[0]) - 0.5, log2(values[-1]) + 0.5], nice=False)
        for side, channel, column, values, title in (
            ("x", alt.X, "left", BATCH_SIZES, "Batch size"),
            ("y", alt.Y, "bottom", WIDTHS, "Hidden units"),
        )
    }
    edges: dict = {**sides, "x2": "right:Q", "y2": "top:Q"}
    blank, cell, tie, equal = (
        alt.Chart(LATER).transform_filter(alt.datum.kind == kind)
        for kind in ("blank", "cell", "tie", "equal")
    )
    tooltip = charts.tips(batch_size="Batch size", hidden="Hidden units")
    tooltip += charts.tips(label="Times as fast", interval="Least to most")
    cells = charts.heat_map(
        cell.encode(x="batch:Q", y="width:Q", tooltip=tooltip),
        shade,
        "label:N",
        colors,
        size=FONT_PIXELS,
        dy=7,  # below the middle of the cell, since the dashed line may pass there
        aria=False,
        **edges,
        stroke=alt.value(colors.page),
    )
    diamonds = equal.mark_point(
        shape="diamond", filled=True, size=50, opacity=0.45, aria=False
    )
    line = equal.transform_filter("datum.joined").encode(order="bottom:Q")
    dashed = line.mark_line(
        color=colors.text, strokeWidth=2, strokeDash=[5, 3], aria=False
    )
    squares, texts = (layer.properties(data=LATER) for layer in cells.layer)
    hatching = tie.mark_rule(color=colors.quiet, opacity=0.35, aria=False)
    return alt.layer(
        blank.mark_rect(opacity=0.35, aria=False).encode(color=shade, **edges),
        squares,
        hatching.encode(**edges),
        diamonds.encode(**sides, color=alt.value(colors.text)),
        dashed.encode(**sides),
        texts,
    ).properties(height=TALL)
