"""A training step taken apart: its five parts, the bottleneck, the traces."""

from collections.abc import Sequence
from statistics import median

import pandas as pd
import streamlit as st

from core.compare.results import PARTS, StepProfile
from core.config import FEEDS, RunConfig
from core.jobs.job import Job
from core.measure.records import Record
from core.ui import controls, downloads, figures, format
from core.ui.charts import compare as charts
from core.ui.compare import records
from core.ui.job_panel import JobPanel, reported

PANEL = JobPanel("core.compare.step_profile:measure", "The profile", "take_apart")
REMEDIES = {
    "load": "Making the batch is the bottleneck: the processor works while the model "
    "waits. Decode once and keep tensors, or give the loader workers.",
    "copy": "The copy to the device is the bottleneck. Send uint8 instead of floats, "
    "use pinned memory, or keep the data on the device.",
    "forward": "The forward pass is the bottleneck: the arithmetic itself, or the time "
    "to start each operation where the batch is small.",
    "backward": "The backward pass is the bottleneck: about twice the arithmetic of "
    "the forward pass. A faster device or a smaller model is what helps.",
    "optimizer": "The optimizer is the bottleneck: it touches every parameter in every "
    "step, whatever the batch. A larger batch means fewer steps.",
}


def draw(task: str, devices: Sequence[str], recorded: Sequence[Record]) -> None:
    """The model, the button, and the bars of every feed on every device."""
    config = RunConfig.with_recipe(task=task, model=controls.model("profiled_model"))
    feeds = ("dataloader", *(feed for feed in FEEDS if feed != "dataloader"))
    elsewhere = records.of(recorded, "breakdowns")
    setups = tuple((feed, device) for device in devices for feed in feeds)
    PANEL.buttons("Take it apart", (config, setups))
    shown = PANEL.follow(
        lambda job: result(
            job, [e for e in elsewhere if e[1].config.model == job.arguments[0].model]
        ),
        ":material/bar_chart: A bar for each, in its five parts, appears here, and "
        "which part is the bottleneck.",
    )
    if not shown and elsewhere:
        bars([], elsewhere)


def result(job: Job, elsewhere: Sequence[tuple[str, StepProfile]]) -> None:
    """Stacked bars, a sentence for each, and the traces."""
    found = list(job.value or reported(job, StepProfile))
    if not job.ended:
        st.info(f"Profiling: {len(found)} of {len(job.arguments[1])} done.")
    if not found:
        return
    bars(found, elsewhere)
    downloads.both("breakdown", [row for each in found for row in each.rows()])
    traces = {_bar(each): each.trace for each in found if each.trace is not None}
    if traces and job.ended:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            chosen = st.selectbox("Trace", list(traces), key="trace", width=260)
            downloads.button(
                "Trace for Perfetto",
                traces[chosen],
                "trace.json.gz",
                "trace_gz",
                mime="application/gzip",
            )
        st.markdown(
            "Three steps, to be opened at [ui.perfetto.dev](https://ui.perfetto.dev)."
        )


def bars(
    found: Sequence[StepProfile], elsewhere: Sequence[tuple[str, StepProfile]] = ()
) -> None:
    """The bars of what was measured here, then of what was recorded."""
    here = [(_bar(each), each, False) for each in found]
    there = [(f"{_bar(each)}, {label}", each, True) for label, each in elsewhere]
    rows = [
        (bar, part, each.typical(part) * 1e3, each.typical(part) / step, recorded)
        for bar, each, recorded in here + there
        for step in [each.typical("step")]
        for part in PARTS
    ]
    columns = ["bar", "part", "milliseconds", "share", "recorded"]
    st.altair_chart(
        charts.parts(pd.DataFrame(rows, columns=columns), PARTS),
        alt="Milliseconds of load, copy, forward, backward and optimizer in a step",
    )
    figures.bullets(
        f"**{bar}**: {format.precise(each.typical('step'))} a step, "
        f"{each.share:.0%} of it **{each.largest}**. {REMEDIES[each.largest]}"
        for bar, each, _ in here + there
    )
    first = found[0] if found else elsewhere[0][1]
    alone = ", ".join(format.precise(median(e.unprofiled)) for e in found)
    covered = ", ".join(f"{each.covered:.0%}" for each in found)
    sums = (
        f" The parts add up to {covered} of the step; without the profiler a step "
        f"takes {alone}."
    )
    figures.caption(
        f"{format.NAMES[first.config.model]}, batch {first.config.batch_size:,}; mean "
        f"over the middle half of n = {len(first.step)} steps after a warm-up. "
        "zero_grad is counted with the forward pass. Each range ends when the device "
        f"has done its work, so nothing overlaps.{sums if found else ''}",
        first,
    )


def _bar(each: StepProfile) -> str:
    return f"{format.NAMES[each.feed]} on {each.environment.backend}"
