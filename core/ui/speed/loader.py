"""The loader lab, as the Speed page shows it."""

from collections.abc import Sequence
from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed import results
from core.speed.results import LoaderCell, LoaderLab, LoaderPlan
from core.ui import controls, dataset, downloads, format, guess
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, reported
from core.ui.source import code_tabs

BUDGETS = (10, 30, 60)  # seconds
PANEL = JobPanel("core.speed.loader:measure", "The loader lab", "run_loader_lab")


def draw(machine: Machine) -> None:
    """The guess, the budget, the heat map, and what the usual advice costs here."""
    st.subheader("Loader lab")
    st.markdown(
        "A `DataLoader` opens its images one by one. Workers do that in processes of "
        "their own, but have to hand every batch over. Whether that pays is a matter "
        "of your machine and your images: measure it."
    )
    plan = results.loader_plan(machine)
    if len(plan.pinned) == 1:
        st.markdown(_not_pinned(machine))
    guessed = guess.ask(
        "loader_guess",
        f"with how many workers does it load fastest here, at batch size "
        f"{results.TEXTBOOK_BATCH}? There are {_cores(machine.usable_cores)}.",
        plan.workers,
        lambda workers: "None" if workers == 0 else f"{workers}",
    )
    budget = controls.budget("loader_budget", BUDGETS)
    task = dataset.default_task(machine)
    device = machine.devices[0].device
    PANEL.buttons(
        "Measure loaders", None if guessed is None else (task, device, plan, budget)
    )
    PANEL.follow(
        lambda job: result(job, guessed, machine.usable_cores),
        ":material/grid_on: Choose a guess, then measure: samples/s for each batch "
        "size and number of workers appear here, cell by cell.",
    )
    with st.expander("The code that ran: loaders", icon=":material/code:"):
        st.markdown(
            "The settings are the three arguments of `DataLoader`. The clock starts "
            "anew when the workers are at work. From `core/speed/loader.py`."
        )
        code_tabs(
            ("The loader", "core.speed.loader:make_loader"),
            ("A cell", "core.speed.loader:measure_cell"),
            ("The loop", "core.speed.loader:take"),
        )


def _not_pinned(machine: Machine) -> str:
    backend = machine.devices[0].backend
    if backend == "CPU":
        return (
            "Pinned memory is left out: it makes copies to an accelerator faster, and "
            "there is none here."
        )
    return f"Pinned memory is left out: {backend} gains nothing from it."


def result(job: Job, guessed: int | None, cores: int) -> None:
    """The cells as far as they are measured; once the learner has guessed."""
    plan: LoaderPlan = job.arguments[2]
    done: LoaderLab | None = job.value
    cells = list(done.cells) if done else reported(job, LoaderCell)
    cores = done.cores if done else cores
    if not job.ended:
        st.info(f"Measuring: {len(cells)} of {plan.cells} cells so far.")
    if done is not None and not cells:
        st.warning("The time was over before the first cell. Give it more.")
    if not cells or guess.missing(guessed):
        return
    if job.ended:
        _judge(cells, guessed)
    st.vega_lite_chart(
        frame(cells),
        charts.loader(rows(plan), plan.workers),
        key="chart_loader",
        alt="Samples per second over batch size and number of workers",
    )
    if job.ended:
        st.markdown("\n".join(f"- {line}" for line in in_words(cells, cores)))
    if done is None:
        return
    for failure in done.failures:
        st.warning(failure, icon=":material/info:")
    _caption(done)
    downloads.both("loaders", done.rows())


def rows(plan: LoaderPlan) -> tuple[str, ...]:
    """The rows of the heat map, from the top."""
    sizes = sorted(plan.batch_sizes)
    return tuple(_row(size, pinned) for pinned in plan.pinned for size in sizes)


def _row(batch_size: int, pinned: bool) -> str:
    return f"{batch_size:,}{', pinned' if pinned else ''}"


def frame(cells: Sequence[LoaderCell]) -> pd.DataFrame:
    """A row a cell, as core.ui.charts.speed.loader wants it."""
    most = results.fastest(cells).samples_per_second
    return pd.DataFrame(
        [
            (
                _row(cell.batch_size, cell.pinned),
                cell.workers,
                cell.samples_per_second,
                format.rounded(cell.samples_per_second, 3),
                "{:,.0f} to {:,.0f}".format(*cell.spread),
                format.precise(cell.start_seconds),
                cell.samples_per_second > 0.72 * most,
            )
            for cell in cells
        ],
        columns=[
            *("row", "workers", "rate", "label", "spread", "start", "dark"),
        ],
    )


def _judge(cells: Sequence[LoaderCell], guessed: int | None) -> None:
    """The fastest beside the guess; where their readings overlap, neither is right."""
    row = results.at_textbook_batch(cells)
    if len(row) < 2:
        return
    best = results.fastest(row)
    chosen = results.find(cells, guessed or 0)
    text = (
        f"At batch size {best.batch_size}, **{_workers(best.workers)}** "
        f"{'is' if best.workers == 1 else 'are'} fastest here: "
        f"{format.rounded(best.samples_per_second, 3)} samples/s."
    )
    if chosen is not None and chosen != best and chosen.as_fast_as(best):
        st.info(
            f"{text} But the readings of your guess, {_workers(chosen.workers)}, "
            f"{format.rounded(chosen.samples_per_second, 3)}, overlap with that: too "
            "close to tell apart.",
            icon=":material/lightbulb:",
        )
        return
    guess.judge(text, _workers(guessed or 0), chosen == best)


def in_words(cells: Sequence[LoaderCell], cores: int) -> list[str]:
    """The best cell, what each piece of the usual advice brings, and the start."""
    best, worst = results.fastest(cells), min(cells, key=lambda c: c.samples_per_second)
    lines = []
    if best != worst:
        times = best.samples_per_second / worst.samples_per_second
        lines.append(
            f"The fastest cell, {_name(best)}, loads "
            f"**{format.rounded(best.samples_per_second, 3)} samples/s**, "
            f"{format.rounded(times)} times as many as the slowest, {_name(worst)}."
        )
    row = results.at_textbook_batch(cells)
    advice = {
        f"“One worker per core”, {results.per_core(cores)} here": results.per_core(
            cores
        ),
        f"“{results.FOR_A_GPU} workers for a GPU”": results.FOR_A_GPU,
    }
    for name, workers in advice.items():
        found = results.find(cells, workers)
        if found is not None and len(row) > 1:
            lines.append(f"{name}: {_against(found, results.fastest(row))}")
    ratios = results.pinning(cells)
    if ratios:
        lines.append(
            f"“Always pin”: {median(ratios):.2f} times as fast as without, the median "
            f"of {len(ratios)} pairs of cells ({min(ratios):.2f} to {max(ratios):.2f})."
        )
    lines += _why(cells)
    return lines


def _against(found: LoaderCell, best: LoaderCell) -> str:
    rate = f"{format.rounded(found.samples_per_second, 3)} samples/s at batch size"
    if found == best:
        return f"{rate} {found.batch_size}, which nothing beats here."
    if found.as_fast_as(best):
        return f"{rate} {found.batch_size}, too close to the best to tell apart."
    share = found.samples_per_second / best.samples_per_second
    return (
        f"{rate} {found.batch_size}, **{share:.0%}** of what {_workers(best.workers)} "
        "would give you."
    )


def _why(cells: Sequence[LoaderCell]) -> list[str]:
    """What an image costs without workers, and what starting workers costs."""
    lines = []
    row = results.at_textbook_batch(cells)
    alone = results.find(cells, 0)
    if alone is not None and len(row) > 1 and results.fastest(row) == alone:
        image = format.precise(1 / alone.samples_per_second)
        lines.append(
            f"An image of 28 × 28 is opened and stacked in {image}: handing it over "
            "costs more than that. Large photos take far longer, and want workers."
        )
    busiest = max(row, key=lambda cell: cell.workers, default=None)
    if alone is not None and busiest is not None and busiest.workers:
        start, first = map(format.precise, (busiest.start_seconds, alone.start_seconds))
        lines.append(
            f"The first batch comes after {start} with {_workers(busiest.workers)}, "
            f"after {first} with none. Each epoch pays that again, unless you set "
            "`persistent_workers=True`; samples/s leave it out."
        )
    return lines


def _caption(done: LoaderLab) -> None:
    missing = done.plan.cells - len(done.cells) - len(done.failures)
    over = f"The {done.budget_seconds:.0f} seconds were over: "
    left_out = f"{over}{missing} of {done.plan.cells} cells are not measured. "
    st.caption(
        (left_out if missing else "")
        + f"Loading and moving, no model: with one, workers load while the device "
        f"computes. {format.NAMES[done.task]} as PIL images, median of n = "
        f"{len(done.cells[0].seconds)} readings; each worker has one thread. "
        f"{format.provenance(done.environment)}. {done.date[:10]}."
    )


def _name(cell: LoaderCell) -> str:
    pinned = ", pinned" if cell.pinned else ""
    return f"batch size {cell.batch_size:,} with {_workers(cell.workers)}{pinned}"


def _workers(count: int) -> str:
    return "no workers" if count == 0 else f"{count} worker{'s' * (count != 1)}"


def _cores(count: int) -> str:
    return f"{count} core{'s' * (count != 1)}"
