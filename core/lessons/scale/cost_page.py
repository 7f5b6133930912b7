"""What a step costs on one rank and on several, as the Scale page shows it."""

from statistics import median

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.scale.data_parallel_page import why_on_cpu
from core.lessons.scale.scale_result import Cost, Repeat, Step
from core.measure import rounding
from core.measure.environment import Machine
from core.measure.speedup import paired, spanned
from core.ui import charts, controls, dataset, format
from core.ui.job_panel import latest
from core.ui.lab import Finding, Guess, Lab

BATCH_SIZES = (64, 512, 4096)
GUESS = "ranks_guess"
GUESSES = (
    "Slower, or about the same",
    "1.1 to 1.7 times as fast",
    "More than 1.7 times as fast",
)


class CostLab(Lab):
    key = "run_cost"
    file = "ranks"
    code = (
        ("A step", "core.lessons.scale.cost:Way.seconds"),
        ("Taking turns", "core.lessons.scale.cost:take_turns"),
    )

    def more(self, machine: Machine) -> str:
        if machine.has_accelerator:
            return why_on_cpu(machine)
        return self.words["share_cores"]

    def asks(self, *_: object) -> Guess:
        return Guess(GUESS, self.words["question"], GUESSES)

    def settings(self, machine: Machine) -> tuple:
        model = controls.model("cost_model")
        size = controls.choice(
            "Batch size", "cost_batch", BATCH_SIZES, index=1, format_func="{:,}".format
        )
        return dataset.default_task(machine), model, size

    def progress(self, job: Job) -> tuple[str, float]:
        at = latest(job, Repeat)
        if at is None:
            return "Starting the ranks", 0.0
        return f"Round {at.done} of {at.of}", at.done / at.of

    def chart(self, cost: Cost) -> None:
        rows = []
        for step in cost.steps:
            middle = median(step.seconds)
            times = (middle - step.exchange, middle, *format.middle_half(step.seconds))
            times_ms = (1e3 * seconds for seconds in times)
            rows.append((name(step), *times_ms, rounding.precise(middle)))
        columns = ["way", "compute", "milliseconds", "low", "high", "time"]
        hue = charts.palette().of(cost.environment.backend)
        ways = charts.rows(
            pd.DataFrame(rows, columns=columns),
            "way",
            limit=190,
            tooltip=charts.tips(way="Way", time="A step, median")
            + charts.tips(".3g", compute="Computing, ms")
            + charts.tips(".3g", low="Lower quartile, ms", high="Upper quartile, ms"),
        )
        x = alt.X("milliseconds:Q").title("Milliseconds per step")
        compute = ways.mark_bar(height=16, color=hue).encode(x="compute:Q")
        ends, outline = alt.value("transparent"), alt.value(hue)
        whole = charts.bars(ways, x, "time:N", fill=ends, stroke=outline)
        st.altair_chart(
            alt.layer(compute, whole).properties(height=alt.Step(34)),
            alt="Milliseconds per step by number of ranks",
        )
        st.markdown(self.words["bars"])

    def finding(self, cost: Cost) -> Finding:
        speedup = cost.speedup(two(cost))
        right = spanned(GUESSES, (1.1, 1.7), *speedup.interval)
        return Finding(speedup.sentence("one rank", "two ranks"), right)

    def lines(self, cost: Cost) -> list[str]:
        lines = []
        for step in cost.steps:
            if step.ranks == 1:
                continue
            speedup, parts = cost.speedup(step), list[str]()
            if step != two(cost):  # the finding has its speedup
                parts.append(f"{speedup.by} times the speed of one rank")
            if speedup.is_sure:
                share = speedup.ratio / step.ranks
                parts.append(f"{share:.0%} of the ideal {step.ranks}×")
            share = step.exchange / median(step.seconds)
            exchange = "less than 1% of a step"
            if share >= 0.01:
                seconds = rounding.precise(step.exchange)
                exchange = f"{seconds}, which is {share:.0%} of a step"
            parts.append(f"the exchange takes {exchange}")
            text = f"**{format.counted(step.ranks, 'rank')}**: {'; '.join(parts)}."
            if step.ranks > cost.cores and cost.environment.backend == "CPU":
                text += f" The ranks share {format.counted(cost.cores, 'core')}."
            lines.append(text)
        return [*lines, *filter(None, [verdict(cost)]), self.words["when"]]

    def caption(self, cost: Cost) -> str:
        return (
            f"{format.NAMES[cost.model]}, {cost.batch_size:,} images in each step, "
            f"split among the ranks; {cost.backend} on {cost.environment.device_name}, "
            f"{format.counted(cost.cores, 'core')}. Median of n = "
            f"{len(cost.steps[0].seconds)} {self.words['repeats']}"
        )


def name(step: Step) -> str:
    """The name of a step's ranks, such as "2 ranks (1 thread each)"."""
    threads = format.counted(step.threads, "thread")
    each_rank = " each" if step.ranks > 1 else ""
    return f"{format.counted(step.ranks, 'rank')} ({threads}{each_rank})"


def two(cost: Cost) -> Step:
    return next(step for step in cost.steps if step.ranks == 2)


def verdict(cost: Cost) -> str:
    """A sentence on whether several ranks are faster than one rank here.

    The fastest way with several ranks is compared with the fastest way with one rank;
    "" if the finding compares just these two.
    """
    steps = sorted(cost.steps, key=lambda step: median(step.seconds))
    single = next(step for step in steps if step.ranks == 1)
    several = next(step for step in steps if step.ranks > 1)
    if (single, several) == (cost.steps[0], two(cost)):
        return ""
    gain = paired(single.seconds, several.seconds)
    helps = {0: "More ranks don't help. ", 1: "More ranks help. ", None: ""}
    return helps[gain.winner] + gain.sentence(name(single), name(several))
