"""The loader lab, as the Speed page shows it."""

from collections.abc import Mapping, Sequence
from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed import results
from core.speed.results import LoaderCell, LoaderLab, LoaderPlan
from core.ui import controls, dataset, downloads, figures, format, guess
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.lab import SIDES, Lab

BUDGETS = (10, 30, 60)  # seconds
LAB = Lab(
    "Loader lab",
    "A `DataLoader` opens its images one by one. Workers do that in processes of their "
    "own, but have to hand over every batch. Whether that pays off depends on your "
    "machine and your images, so measure it.",
    "loaders",
    JobPanel("core.speed.loader:measure", "The loader lab", "run_loader_lab"),
    ":material/grid_on: Guess, then measure: samples/s for each batch size "
    "and number of workers appear here, cell by cell.",
    "The settings are the three arguments of `DataLoader`. The clock restarts once "
    "the workers are running. From `core/speed/loader.py`.",
    (
        ("The loader", "core.speed.loader:make_loader"),
        ("A cell", "core.speed.loader:measure_cell"),
        ("The loop", "core.speed.loader:take"),
    ),
)


def draw(machine: Machine) -> None:
    """The guess, the budget, the heat map, and what the usual advice costs here."""
    best, cores = machine.devices[0], machine.usable_cores
    plan = results.loader_plan(machine)
    LAB.begin(machine, _not_pinned(best.backend) if len(plan.pinned) == 1 else "")
    with controls.row():
        guessed = guess.ask(
            "loader_guess",
            f"with {format.counted(cores, 'core')}, how many workers load batches of "
            f"{results.TEXTBOOK_BATCH} fastest?",
            plan.workers,
            lambda workers: str(workers or "None"),
            LAB.panel.ran,
        )
        budget = controls.budget("loader_budget", BUDGETS)
        wanted = (dataset.default_task(machine), best.device, plan, budget)
        LAB.buttons(wanted)
    LAB.follow(lambda job: result(job, guessed, cores))


def _not_pinned(backend: str) -> str:
    why = f"{backend} gains nothing from it."
    if backend == "CPU":
        why = "it speeds up copies to an accelerator, and there is none here."
    return f"Pinned memory is left out: {why}"


def result(job: Job, guessed: int | str | None, cores: int) -> None:
    """The cells as far as they are measured; once the learner has guessed."""
    plan: LoaderPlan = job.arguments[2]
    done: LoaderLab | None = job.value
    cells = list(done.cells) if done else reported(job, LoaderCell)
    direct = done.direct if done else ()
    cores = done.cores if done else cores
    if not job.ended:
        text = f"Measuring: {len(cells)} of {plan.cells} cells so far"
        slot(text, len(cells) / plan.cells)
    if done is not None and not cells:
        st.warning("Time ran out before the first cell was measured. Give it more.")
    if not cells or guess.missing(guessed):
        return
    sizes = sorted(plan.batch_sizes)
    rows = tuple(_row(size, pinned) for pinned in plan.pinned for size in sizes)
    chart, words = st.columns(SIDES)
    chart.vega_lite_chart(
        frame(cells),
        charts.loader(rows, plan.workers),
        key="chart_loader",
        alt="Samples per second over batch size and number of workers",
    )
    if job.ended:
        with words:
            _judge(direct or cells, guessed)
            figures.bullets(in_words(cells, direct, cores))
    if done is None:
        return
    for failure in done.failures:
        st.warning(failure, icon=":material/info:")
    _caption(done)
    downloads.both("loaders", done.rows())


def _row(batch_size: int, pinned: bool) -> str:
    """A row of the heat map."""
    return f"{batch_size:,}{', pinned' if pinned else ''}"


def frame(cells: Sequence[LoaderCell]) -> pd.DataFrame:
    """A row a cell, as core.ui.charts.speed.loader wants it."""
    most = results.fastest(cells).samples_per_second
    return pd.DataFrame(
        {
            "row": _row(cell.batch_size, cell.pinned),
            "workers": cell.workers,
            "rate": cell.samples_per_second,
            "label": _rate(cell),
            "spread": "{:,.0f} to {:,.0f}".format(*cell.spread),
            "start": format.precise(cell.start_seconds),
            "dark": cell.samples_per_second > 0.72 * most,
        }
        for cell in cells
    )


def _judge(cells: Sequence[LoaderCell], guessed: int | str | None) -> None:
    """The fastest beside the guess; where their readings overlap, neither is right."""
    row = results.at_textbook_batch(cells)
    if len(row) < 2:
        return
    best = results.fastest(row.values())
    chosen = next((row[each] for each in row if each == guessed), None)
    text = (
        f"At batch size {best.batch_size}, **{_workers(best.workers)}** "
        f"{'is' if best.workers == 1 else 'are'} fastest here: {_rate(best)} samples/s."
    )
    if chosen is not None and chosen != best and chosen.as_fast_as(best):
        st.info(
            f"{text} But the readings of your guess, {_workers(chosen.workers)}, "
            f"{_rate(chosen)}, overlap with that: too close to tell apart.",
            icon=":material/lightbulb:",
        )
    else:
        guess.judge(text, guessed, best.workers, say=_workers)


def in_words(
    cells: Sequence[LoaderCell], direct: Sequence[LoaderCell], cores: int
) -> list[str]:
    """The best cell, what each piece of the usual advice brings, and the start."""
    best, worst = results.fastest(cells), min(cells, key=lambda c: c.samples_per_second)
    lines = []
    if best != worst:
        lines.append(
            f"The fastest cell, {_name(best)}, loads **{_rate(best)} samples/s**; the "
            f"slowest, {_name(worst)}, {_rate(worst)}."
        )
    row = results.at_textbook_batch(cells)
    in_turn = results.at_textbook_batch(direct)
    per_core = results.per_core(cores)
    advice = {
        f"“One worker per core”, {per_core} here": per_core,
        f"“{results.FOR_A_GPU} workers for a GPU”": results.FOR_A_GPU,
    }
    if len(row) > 1:
        lines += [
            f"{name}: {_against(in_turn.get(workers, row[workers]), in_turn)}"
            for name, workers in advice.items()
            if workers in row
        ]
    if ratios := results.pinning(cells):
        lines.append(
            f"“Always pin”: {format.times(median(ratios))} times as fast as without, "
            f"the median of {len(ratios)} pairs of cells "
            f"({format.times(min(ratios))} to {format.times(max(ratios))})."
        )
    return lines + _why(row | in_turn)


def _against(found: LoaderCell, in_turn: Mapping[int, LoaderCell]) -> str:
    """How fast it is, and beside the best, where they were read in turn."""
    text = f"{_rate(found)} samples/s at batch size {found.batch_size}"
    if found not in in_turn.values():
        return f"{text}."
    best = results.fastest(in_turn.values())
    if found == best:
        return f"{text}, which nothing beats here."
    if found.as_fast_as(best):
        return f"{text}, too close to the best to tell apart."
    share = f"**{found.share_of(best):.0%}**"
    return f"{text}, {share} of what {_workers(best.workers)} would give you."


def _why(row: Mapping[int, LoaderCell]) -> list[str]:
    """What an image costs without workers, and what starting workers costs."""
    if len(row) < 2 or 0 not in row:
        return []
    lines = []
    alone, busiest = row[0], row[max(row)]
    if results.fastest(row.values()) == alone:
        image = format.precise(1 / alone.samples_per_second)
        lines.append(
            f"An image of 28 × 28 is opened and stacked in {image}: handing it over "
            "costs more than that. Large photos take far longer, and that is what "
            "workers are for."
        )
    start, first = map(format.precise, (busiest.start_seconds, alone.start_seconds))
    return [
        *lines,
        f"The first batch comes after {start} with {_workers(busiest.workers)}, "
        f"after {first} with none. Each epoch pays that again, unless you set "
        "`persistent_workers=True`; samples/s leave it out.",
    ]


def _caption(done: LoaderLab) -> None:
    missing = done.plan.cells - len(done.cells) - len(done.failures)
    over = f"The {done.budget_seconds:.0f} seconds ran out: "
    again = ""
    if done.direct:
        n = len(done.direct[0].seconds)
        again = f", and of {n} in turn where workers are compared"
    left_out = f"{over}{missing} of {done.plan.cells} cells were not measured. "
    figures.caption(
        (left_out if missing else "")
        + f"Loading and moving, no model: with one, workers load while the device "
        f"computes. {format.NAMES[done.task]} as PIL images, median of n = "
        f"{len(done.cells[0].seconds)} readings{again}; each worker has one thread.",
        done,
    )


def _name(cell: LoaderCell) -> str:
    pinned = ", pinned" if cell.pinned else ""
    return f"batch size {cell.batch_size:,} with {_workers(cell.workers)}{pinned}"


def _workers(count: int) -> str:
    return format.counted(count, "worker") if count else "no workers"


def _rate(cell: LoaderCell) -> str:
    return format.rounded(cell.samples_per_second, 3)
