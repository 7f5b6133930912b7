"""The memory lab, as the Speed page shows it."""

from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed.results import (
    ACCUMULATED,
    CHECKPOINTED,
    STEP,
    MemoryCost,
    MemoryLab,
    Peak,
)
from core.ui import downloads, figures, format
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, reported
from core.ui.source import code_tabs

WAYS = 6
BELOW = (ACCUMULATED, "inference_mode")  # names under their point, not over it
PANEL = JobPanel("core.speed.memory:measure", "The memory lab", "run_memory_lab")


def draw(machine: Machine) -> None:
    """Time against peak memory for three ways to train and three to infer."""
    st.subheader("Memory lab")
    st.markdown(
        "The forward pass keeps its activations for the backward pass, and in a deep "
        "model they take more memory than the weights. Three things free it: "
        "recomputing them, smaller batches whose gradients add up, and not asking for "
        "gradients where you only infer."
    )
    PANEL.buttons("Measure memory", (machine.devices[0].device,))
    PANEL.follow(
        result,
        ":material/scatter_plot: Time against peak memory, a point for each way, "
        "appears here, and what each costs and saves.",
    )
    with st.expander("The code that ran: memory", icon=":material/code:"):
        st.markdown(
            "The model, the inputs and the targets are the same in all of them. From "
            "`core/speed/memory.py`."
        )
        code_tabs(
            ("One batch", "core.speed.memory:one_batch"),
            ("Checkpointed", "core.speed.memory:checkpointed"),
            ("Accumulated", "core.speed.memory:accumulated"),
            ("Inference", "core.speed.memory:infer"),
        )


def result(job: Job) -> None:
    done: MemoryLab | None = job.value
    if done is None:
        peaks = reported(job, Peak)
        if not job.ended:
            st.info(
                f"Peak memory of {len(peaks)} of {WAYS} ways measured"
                + ("." if len(peaks) < WAYS else "; now their time, in turn.")
            )
        _so_far(peaks)
        return
    backend = done.environment.backend
    if all(cost.peak_bytes is not None for cost in done.costs):
        st.altair_chart(
            charts.memory(frame(done), backend),
            alt="Peak megabytes over milliseconds, a point for each way",
        )
    else:
        st.info(f"torch does not count peak memory on {backend}: here is the time.")
    _table(done)
    st.markdown("\n".join(f"- {line}" for line in in_words(done)))
    st.caption(
        f"{done.layers} linear layers, {done.width} wide, batch {done.batch_size:,}; "
        f"tensors alive at once, beyond model and batch. Time: median of n = "
        f"{len(done.costs[0].seconds)} repeats in turn after a warm-up. "
        f"{format.provenance(done.environment)}. {done.date[:10]}."
    )
    downloads.both("memory", done.rows())


def _so_far(peaks: list[Peak]) -> None:
    """The peaks that are known already, as a list."""
    known = [peak for peak in peaks if peak.bytes is not None]
    if known:
        st.markdown(
            "\n".join(f"- {peak.name}: {format.size(peak.bytes)}" for peak in known)
        )


def frame(done: MemoryLab) -> pd.DataFrame:
    """A row a way, as core.ui.charts.speed.memory wants it."""
    return pd.DataFrame(
        [
            (
                cost.kind,
                cost.name,
                median(cost.seconds) * 1e3,
                min(cost.seconds) * 1e3,
                max(cost.seconds) * 1e3,
                (cost.peak_bytes or 0) / 1e6,
                cost.name in BELOW,
            )
            for cost in done.costs
        ],
        columns=[
            *("kind", "name", "milliseconds", "low", "high"),
            *("megabytes", "below"),
        ],
    )


def _table(done: MemoryLab) -> None:
    figures.table(
        [
            (
                cost.kind.capitalize(),
                cost.name,
                format.size(cost.peak_bytes),
                format.precise(median(cost.seconds)),
                format.spread(cost.seconds),
            )
            for cost in done.costs
        ],
        ["What", "Way", "Peak memory", "Time, median", "Spread"],
        "Peak memory and time of each way",
    )


def in_words(done: MemoryLab) -> list[str]:
    """What each way costs and saves, against the plain one of its kind."""
    found = {(cost.kind, cost.name): cost for cost in done.costs}
    step, plain = found["training", STEP], found["inference", "gradients"]
    again, added = (found["training", n] for n in (CHECKPOINTED, ACCUMULATED))
    part = done.batch_size // done.parts
    no_grad, inference = (
        found["inference", name] for name in ("no_grad", "inference_mode")
    )
    return [
        f"**Checkpointed**: {_against(again, step)}. Of each segment only the input is "
        f"kept; the forward pass runs twice. {_gradients(again)}",
        f"**Accumulated**, {done.parts} × {part:,} instead of {done.batch_size:,}: "
        f"{_against(added, step)}. Only a part's activations are alive at once. "
        f"{_gradients(added)}",
        f"**no_grad**: {_against(no_grad, plain)}, compared with the same forward pass "
        "with gradients. No activation outlives the next layer.",
        f"**inference_mode**: {_against(inference, plain)}. It also drops what "
        "autograd notes of each tensor, which counts where calls are short.",
    ]


def _against(cost: MemoryCost, plain: MemoryCost) -> str:
    time = median(cost.seconds) / median(plain.seconds)
    if cost.peak_bytes is None or not plain.peak_bytes:
        return f"{time:.2f} times the time"
    share = cost.peak_bytes / plain.peak_bytes
    return f"{share:.0%} of the peak memory, {time:.2f} times the time"


def _gradients(cost: MemoryCost) -> str:
    if cost.difference == 0:
        return "The gradients are the same, bit for bit."
    return (
        f"The gradients differ by at most {cost.difference:.1e}, where the greatest is "
        f"{cost.greatest:.2g}: the same sums, added in another order."
    )
