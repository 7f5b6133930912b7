"""What a step costs on one rank and on several, as the Scale page shows it."""

from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.speedup import Speedup, paired
from core.scale.results import Cost, Repeat, Step
from core.ui import controls, dataset, downloads, figures, format, guess
from core.ui.charts import scale as charts
from core.ui.job_panel import JobPanel, latest, slot
from core.ui.lab import SIDES, Lab
from core.ui.scale import on_cpu

BATCH_SIZES = (64, 512, 4096)
WHEN = (
    "Ranks pay off when computing takes far longer than exchanging: large batches, "
    "many calculations per weight, and a device for each rank. Try another batch size."
)
GUESS = "ranks_guess"
GUESSES = (
    "Slower, or about the same",
    "1.1 to 1.7 times as fast",
    "More than 1.7 times as fast",
)
LAB = Lab(
    "What it costs",
    "Two ranks compute half a batch each, at the same time. But in every step they "
    "exchange all gradients.",
    "a step",
    JobPanel("core.scale.cost:measure", "The measurement", "run_cost"),
    ":material/bar_chart: Guess, then measure how long a step takes on one, two, and "
    "four ranks, and how much of it is the exchange.",
    "All ranks start at once, and the setups take turns. `no_sync()` skips the "
    "exchange. The time it saves is what the exchange adds, waiting for the slower "
    "rank included. From `core/scale/cost.py`.",
    (
        ("A step", "core.scale.cost:Way.seconds"),
        ("Taking turns", "core.scale.cost:take_turns"),
    ),
    on_a_cpu=" Here they also share the CPU's cores.",
)


def draw(machine: Machine) -> None:
    """The guess, the bars, and when ranks pay off."""
    LAB.begin(machine, on_cpu.why(machine))
    question = "how fast are two ranks, relative to one?"
    guessed = guess.ask(GUESS, question, GUESSES, ran=LAB.panel.ran)
    with controls.row():
        model = controls.model("cost_model")
        size = controls.choice(
            "Batch size", "cost_batch", BATCH_SIZES, index=1, format_func="{:,}".format
        )
        task = dataset.default_task(machine)
        LAB.buttons((task, model, size))
    LAB.follow(lambda job: result(job, guessed))


def result(job: Job, guessed: str | None) -> None:
    done: Cost | None = job.value
    if done is None:
        if not job.ended:
            at = latest(job, Repeat)
            text = f"Round {at.done} of {at.of}" if at else "Starting four ranks"
            slot(text, at.done / at.of if at else 0.0)
        return
    if guess.missing(guessed):
        return
    chart, words = st.columns(SIDES)
    chart.altair_chart(
        charts.steps(frame(done), done.environment.backend),
        alt="Milliseconds of a step on one rank, on two and on four",
    )
    with words:
        _judge(done, guessed)
        figures.bullets(in_words(done))
    chart.markdown(":small[Filled: computing. Outlined: the exchange adds this.]")
    figures.caption(
        f"{format.NAMES[done.model]}, {done.batch_size:,} images in each step, shared "
        f"by its ranks; {done.backend} on {done.environment.device_name}, "
        f"{format.counted(done.cores, 'core')}. Median of n = "
        f"{len(done.steps[0].seconds)} repeats, taken in turn after a warm-up; each is "
        "the slowest rank's mean over several steps, without loading. The line spans "
        "the middle half.",
        done,
    )
    downloads.both("ranks", done.rows())


def name(step: Step) -> str:
    """2 ranks (1 thread each)."""
    threads = format.counted(step.threads, "thread")
    each = " each" if step.ranks > 1 else ""
    return f"{format.counted(step.ranks, 'rank')} ({threads}{each})"


def frame(done: Cost) -> pd.DataFrame:
    """A row for each way, in milliseconds."""
    rows = []
    for each in done.steps:
        middle = median(each.seconds)
        low, high = format.middle_half(each.seconds)
        times = (middle - each.exchange, middle, low, high)
        rows.append(
            (name(each), *(1e3 * time for time in times), format.precise(middle))
        )
    columns = ["way", "compute", "milliseconds", "low", "high", "time"]
    return pd.DataFrame(rows, columns=columns)


def two(done: Cost) -> Step:
    """The way with two ranks."""
    return next(each for each in done.steps if each.ranks == 2)


def _judge(done: Cost, guessed: str | None) -> None:
    """How fast two ranks are, beside the guess, if the repeats agree on it."""
    found = done.speedup(two(done))
    low, high = format.middle_half(found.ratios)
    sure = _answer(low) == _answer(high)
    guess.judge(
        f"Two ranks run at **{_times(found)} times** the speed of one.",
        guessed if sure else None,
        _answer(found.median),
    )


def _answer(times: float) -> str:
    return GUESSES[(times >= 1.1) + (times > 1.7)]


def _times(found: Speedup) -> str:
    """A figure; a range where the pairs disagree, or leave open who is faster."""
    if found.is_sure:
        return format.times(found.median)
    low, high = found.interval
    return f"{format.times(low)} to {format.times(high)}"


def in_words(done: Cost) -> list[str]:
    """What each number of ranks brings and loses, and whether that pays."""
    lines = []
    for step in done.steps:
        if step.ranks == 1:
            continue
        found = done.speedup(step)
        text = f"**{step.ranks} ranks**: {_times(found)} times the speed of one"
        if found.is_sure:
            text += f", {found.median / step.ranks:.0%} of the ideal {step.ranks}×"
        share = step.exchange / median(step.seconds)
        text += (
            f". The exchange adds {share:.0%} of a step, "
            f"{format.precise(step.exchange)}."
            if share >= 0.01
            else ". The exchange is too short to tell from noise."
        )
        if step.ranks > done.cores and done.environment.backend == "CPU":
            text += f" They share {format.counted(done.cores, 'core')}."
        lines.append(text)
    return [*lines, verdict(done), WHEN]


def verdict(done: Cost) -> str:
    """Whether ranks pay here, beside the better of the ways with one process."""
    one, several = (
        min(found, key=lambda each: median(each.seconds))
        for found in (
            [each for each in done.steps if each.ranks == 1],
            [each for each in done.steps if each.ranks > 1],
        )
    )
    found = paired(one.seconds, several.seconds)
    if found.winner is None:
        return f"**Too close to call** between {name(several)} and {name(one)}."
    if found.winner == 0:
        return (
            f"**It doesn't pay here**: {name(one)} is {_faster(one, several)} "
            f"{name(several)}. The extra processes cost more than they save."
        )
    gain = _faster(several, one)
    return f"**It pays here**: {name(several)} are {gain} {name(one)}."


def _faster(fast: Step, slow: Step) -> str:
    """1.3× as fast as; without the figure where the repeats disagree on it."""
    gain = paired(slow.seconds, fast.seconds)
    return f"{format.times(gain.median)}× as fast as" if gain.steady else "faster than"
