"""The memory lab, as the Speed page shows it."""

from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.speedup import paired
from core.speed import results
from core.speed.results import MemoryCost, MemoryLab, Peak
from core.ui import controls, downloads, figures, format, guess
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.lab import SIDES, Lab

WAYS = 6
GUESSES = (
    "Over three quarters",
    "A quarter to three quarters",
    "Under a quarter",
)
BELOW = (results.ACCUMULATED, "inference_mode")  # names under their point, not over it
LAB = Lab(
    "Memory lab",
    "The forward pass keeps its activations for the backward pass, and in a deep model "
    "they take more memory than the weights. Three things save memory: recomputing "
    "activations, adding up the gradients of smaller batches, and turning gradients "
    "off when you only predict.",
    "memory",
    JobPanel("core.speed.memory:measure", "The memory lab", "run_memory_lab"),
    ":material/scatter_plot: Time against peak memory, a point for each way, appears "
    "here, and what each costs and saves.",
    "The model, the inputs and the targets are the same in all of them. From "
    "`core/speed/memory.py`.",
    (
        ("One batch", "core.speed.memory:one_batch"),
        ("Checkpointed", "core.speed.memory:checkpointed"),
        ("Accumulated", "core.speed.memory:accumulated"),
        ("Inference", "core.speed.memory:infer"),
    ),
)


def draw(machine: Machine) -> None:
    """Time against peak memory for three ways to train and three to infer."""
    LAB.begin(machine)
    question = "how much of a step's peak memory is left with checkpointing?"
    with controls.row():
        guessed = guess.ask("memory_guess", question, GUESSES, ran=LAB.panel.ran)
        LAB.buttons((machine.devices[0].device,))
    LAB.follow(lambda job: result(job, guessed))


def result(job: Job, guessed: str | None) -> None:
    done: MemoryLab | None = job.value
    if done is None:
        _so_far(job, guessed)
        return
    if guess.missing(guessed):
        return
    backend = done.environment.backend
    chart, words = st.columns(SIDES)
    if all(cost.peak_bytes is not None for cost in done.costs):
        chart.altair_chart(
            charts.memory(frame(done), backend),
            alt="Peak megabytes over milliseconds, a point for each way",
        )
    else:
        chart.info(f"torch does not count peak memory on {backend}: here is the time.")
    with words:
        _judge(done, guessed)
        figures.bullets(in_words(done))
    ways = (
        {
            "What": cost.kind.capitalize(),
            "Way": cost.name,
            "Peak, MB": None if cost.peak_bytes is None else cost.peak_bytes / 1e6,
            "Median, ms": median(cost.seconds) * 1e3,
            "Least, ms": min(cost.seconds) * 1e3,
            "Most, ms": max(cost.seconds) * 1e3,
        }
        for cost in done.costs
    )
    number = st.column_config.NumberColumn(format="%.1f")
    columns = ("Peak, MB", "Median, ms", "Least, ms", "Most, ms")
    figures.table(
        ways,
        alt="Peak memory and time of each way",
        column_config=dict.fromkeys(columns, number),
    )
    figures.caption(
        f"{done.layers} linear layers, {done.width} wide, batch {done.batch_size:,}; "
        f"tensors alive at once, beyond model and batch. Time: median of n = "
        f"{len(done.costs[0].seconds)} repeats in turn after a warm-up.",
        done,
    )
    downloads.both("memory", done.rows())


def _judge(done: MemoryLab, guessed: str | None) -> None:
    """How much of the peak memory is left, beside the guess."""
    peak = {cost.name: cost.peak_bytes for cost in done.costs}
    checkpointed, plain = peak[results.CHECKPOINTED], peak[results.STEP]
    if checkpointed and plain:
        share = checkpointed / plain
        right = GUESSES[(share < 0.75) + (share < 0.25)]
        guess.judge(f"Checkpointing leaves **{share:.0%}** of it.", guessed, right)


def _so_far(job: Job, guessed: str | None) -> None:
    """The peaks that are known already, as a list."""
    peaks = reported(job, Peak)
    if not job.ended:
        next_up = "" if len(peaks) < WAYS else "; now their time, in turn"
        text = f"Peak memory of {len(peaks)} of {WAYS} ways measured{next_up}"
        slot(text, len(peaks) / WAYS)
    if guess.missing(guessed):
        return
    if known := [peak for peak in peaks if peak.bytes is not None]:
        figures.bullets(f"{peak.name}: {format.size(peak.bytes)}" for peak in known)


def frame(done: MemoryLab) -> pd.DataFrame:
    """A row a way, as core.ui.charts.speed.memory wants it."""
    found = figures.readings(
        done.costs, "kind", "name", ends=lambda s: (min(s), max(s)), milliseconds=1e3
    )
    return found.assign(
        megabytes=[(cost.peak_bytes or 0) / 1e6 for cost in done.costs],
        below=found["name"].isin(BELOW),
    )


def in_words(done: MemoryLab) -> list[str]:
    """What each way costs and saves, against the plain one of its kind."""
    found = {cost.name: cost for cost in done.costs}
    again, added = found[results.CHECKPOINTED], found[results.ACCUMULATED]
    step, plain = found[results.STEP], found["gradients"]
    part = done.batch_size // done.parts
    return [
        f"**Checkpointed**: {_against(again, step)}. Only each segment's input is "
        f"kept; the forward pass runs twice. {_gradients(again)}",
        f"**Accumulated**, {done.parts} × {part:,} instead of {done.batch_size:,}: "
        f"{_against(added, step)}. Only a part's activations are alive at once. "
        f"{_gradients(added)}",
        f"**no_grad**: {_against(found['no_grad'], plain)}, compared with the same "
        "forward pass with gradients. No activation outlives the next layer.",
        f"**inference_mode**: {_against(found['inference_mode'], plain)}. It also "
        "drops what autograd notes of each tensor, which matters when calls are short.",
    ]


def _against(cost: MemoryCost, plain: MemoryCost) -> str:
    ratio = paired(cost.seconds, plain.seconds).median
    time = f"{format.times(ratio)} times the time"
    if cost.peak_bytes is None or not plain.peak_bytes:
        return time
    return f"{cost.peak_bytes / plain.peak_bytes:.0%} of the peak memory, {time}"


def _gradients(cost: MemoryCost) -> str:
    if cost.difference == 0:
        return "The gradients are the same, bit for bit."
    return (
        f"The gradients differ by at most {cost.difference:.1e}, where the greatest is "
        f"{cost.greatest:.2g}: the same sums, added in another order."
    )
