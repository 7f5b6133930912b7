"""The Speed page's lab on DataLoaders: batch size, workers and pinned memory."""

from statistics import median

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.speed import loader_result
from core.lessons.speed.loader_result import LoaderCell, LoaderLab
from core.measure import rounding
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, format
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab
from core.ui.server import engine


class Loader(Lab):
    key = "run_loader_lab"
    file = "loaders"
    job_name = "The loader lab"
    judged = "ended"
    code = (
        ("The loader", "core.lessons.speed.loader:make_loader"),
        ("A cell", "core.lessons.speed.loader:measure_cell"),
        ("The loop", "core.lessons.speed.loader:take"),
    )

    def more(self, machine: Machine) -> str | None:
        if len(loader_result.loader_plan(machine).pinned) > 1:
            return None
        backend = machine.devices[0].backend
        if backend == "CPU":
            return self.words["pinned_on_cpu"]
        return self.words["pinned_elsewhere"].format(backend=backend)

    def asks(self, machine: Machine, _: tuple | None) -> Guess:
        cores = format.counted(machine.usable_cores, "core")
        return Guess(
            "loader_guess",
            self.words["question"].format(cores=cores),
            loader_result.loader_plan(machine).workers,
            lambda workers: str(workers or "None"),
        )

    def settings(self, machine: Machine) -> tuple:
        plan = loader_result.loader_plan(machine)
        budget = controls.budget("loader_budget", (10, 30, 60))
        return dataset.default_task(machine), machine.devices[0].device, plan, budget

    def progress(self, job: Job) -> tuple[str, float]:
        cells, planned = len(reported(job, LoaderCell)), job.arguments[2].cells
        return f"Measuring: {cells} of {planned} cells so far", cells / planned

    def gather(self, job: Job) -> LoaderLab | None:
        if job.value is not None:
            if not job.value.cells:
                st.warning(self.words["too_short"])
            return job.value if job.value.cells else None
        cells, machine = tuple(reported(job, LoaderCell)), engine().machine()
        if not cells or machine is None:
            return None
        task, _, plan, budget = job.arguments
        here = machine.usable_cores, budget, machine.devices[0]
        return LoaderLab(plan, cells, (), (), task, *here, date="")

    def chart(self, lab: LoaderLab) -> None:
        sizes = sorted(lab.plan.batch_sizes)
        rows = tuple(row_name(s, pinned) for pinned in lab.plan.pinned for s in sizes)
        most = loader_result.fastest(lab.shown).samples_per_second
        cells = (
            {
                "row": row_name(cell.batch_size, cell.pinned),
                "workers": cell.workers,
                "rate": cell.samples_per_second,
                "label": rate(cell),
                "spread": "{:,.0f} to {:,.0f}".format(*cell.spread),
                "start": rounding.precise(cell.start_seconds),
                "dark": cell.samples_per_second > 0.72 * most,
            }
            for cell in lab.shown
        )
        st.vega_lite_chart(
            pd.DataFrame(cells),
            heat_map(rows, lab.plan.workers),
            key=f"chart_loader{self.suffix}",
            alt="Samples per second by batch size and number of workers",
        )

    def finding(self, lab: LoaderLab) -> Finding | None:
        row = loader_result.at_textbook_batch(lab.shown)
        if len(row) < 2:
            return None
        best = loader_result.fastest(row.values())
        are = "is" if best.workers == 1 else "are"
        fields = {"workers": in_words(best.workers), "are": are}
        text = self.words["fastest"].format(size=best.batch_size, **fields)
        close = [w for w, cell in row.items() if lab.over(cell, best).winner is None]
        if others := [in_words(w) for w in close if w != best.workers]:
            text += self.words["unsure"].format(format.enumerated(others))
        return Finding(text, tuple(close), say=in_words)

    def lines(self, lab: LoaderLab) -> list[str]:
        best = loader_result.fastest(lab.shown)
        worst = min(lab.shown, key=lambda cell: cell.samples_per_second)
        row = loader_result.at_textbook_batch(lab.shown)
        if len(row) < 2:
            return []
        ends = setting(best), rate(best), setting(worst), rate(worst)
        lines = [self.words["ends"].format(*ends)]
        per_core = loader_result.per_core(lab.cores)
        advice = {
            f"“One worker per core”, {per_core} here": per_core,
            f"“{loader_result.FOR_A_GPU} workers for a GPU”": loader_result.FOR_A_GPU,
        }
        lines += [
            f"{name}: {against(row[workers], lab)}"
            for name, workers in advice.items()
            if workers in row
        ]
        if ratios := loader_result.pinning(lab.cells):
            least, most = min(ratios), max(ratios)
            texts = (rounding.times(r, least) for r in (median(ratios), least, most))
            lines.append(self.words["pinning"].format(*texts, n=len(ratios)))
        alone, busiest = row[0], row[max(row)]
        if loader_result.fastest(row.values()) == alone:
            image = rounding.precise(1 / alone.samples_per_second)
            lines.append(self.words["handing_over"].format(seconds=image))
        start, first = map(
            rounding.precise, (busiest.start_seconds, alone.start_seconds)
        )
        workers = in_words(busiest.workers)
        return [*lines, self.words["first"].format(start, workers, first)]

    def below(self, lab: LoaderLab) -> None:
        for failure in lab.failures:
            st.warning(failure, icon=":material/info:")

    def caption(self, lab: LoaderLab) -> str:
        missing = lab.plan.cells - len(lab.cells) - len(lab.failures)
        text = again = ""
        if missing:
            text = self.words["left_out"].format(lab=lab, missing=missing)
        if lab.direct:
            again = self.words["again"].format(n=len(lab.direct[0].seconds))
        task, n = format.NAMES[lab.task], len(lab.cells[0].seconds)
        return text + self.words["how"].format(task=task, n=n, again=again)


@charts.live
def heat_map(
    colors: charts.Palette, rows: tuple[str, ...], workers: tuple[int, ...]
) -> charts.Chart:
    """Samples/s by `rows` (batch sizes) and workers; empty if not measured."""
    across = alt.X("workers:O").title("Workers").scale(domain=list(workers))
    down = alt.Y("row:N").title("Batch size").scale(domain=list(rows))
    chart = alt.Chart(charts.LATER).encode(
        x=across.axis(labelAngle=0),
        y=down.sort(None),
        tooltip=charts.tips(row="Batch size", workers="Workers")
        + charts.tips(",.0f", rate="Samples/s")
        + charts.tips(spread="Least to most", start="To the first batch"),
    )
    shade = charts.shades("rate", colors.low, colors.cpu, domainMin=0, zero=True)
    cells = charts.heat_map(chart, shade, "label:N", colors, "datum.dark", size=12)
    return cells.properties(height=alt.Step(40))


def row_name(batch_size: int, pinned: bool) -> str:
    return f"{batch_size:,}{', pinned' if pinned else ''}"


def against(cell: LoaderCell, lab: LoaderLab) -> str:
    """The cell's speed, compared with the fastest cell of the same batch size."""
    text = f"{rate(cell)} samples/s at batch size {cell.batch_size}"
    best = loader_result.fastest(loader_result.at_textbook_batch(lab.shown).values())
    if cell == best:
        return f"{text}, which is the fastest here."
    speedup = lab.over(cell, best)
    if speedup.winner is None:
        return f"{text}, too close to the fastest to tell which is better."
    share = f"**{speedup.ratio:.0%}**"
    return f"{text}, or {share} of the speed with {in_words(best.workers)}."


def setting(cell: LoaderCell) -> str:
    pinned = ", pinned" if cell.pinned else ""
    return f"batch size {cell.batch_size:,} with {in_words(cell.workers)}{pinned}"


def in_words(workers: int) -> str:
    return format.counted(workers, "worker") if workers else "no workers"


def rate(cell: LoaderCell) -> str:
    return rounding.rounded(cell.samples_per_second, 3)
