"""A training step taken apart: its five parts, the bottleneck, the traces."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

import pandas as pd
import streamlit as st

from core.compare.results import DEVICE, HOST, PARTS, Span, StepProfile
from core.config import FEEDS, RunConfig
from core.jobs.job import Job
from core.measure.records import Record
from core.ui import controls, downloads, figures, format, guess
from core.ui.charts import compare as charts
from core.ui.compare import records
from core.ui.format import NAMES
from core.ui.job_panel import JobPanel, reported, slot

PANEL = JobPanel("core.compare.step_profile:measure", "The profile", "take_apart")
REMEDIES = {  # what a part spends its time on, and what helps
    "load": "the processor makes the batch while the model waits. Decode once and keep "
    "tensors, or give the loader workers.",
    "copy": "the batch travels to the device. Send uint8 instead of floats, use pinned "
    "memory, or keep the data on the device.",
    "forward": "either the arithmetic itself, or with small batches the time it takes "
    "to start each operation.",
    "backward": "about twice the arithmetic of the forward pass. A faster device or a "
    "smaller model helps; 16-bit numbers and `torch.compile` may too, as the Speed "
    "page measures.",
    "optimizer": "it touches every parameter in every step, whatever the batch. A "
    "larger batch means fewer steps.",
}
EXAMPLE = {  # a step of each feed, on nobody's machine
    feed: tuple(
        Span(HOST, part, start / 1e3, end / 1e3)
        for part, (start, end) in zip(PARTS, pairwise(ends), strict=True)
    )
    for feed, ends in {
        "dataloader": (0.0, 3.0, 3.1, 3.4, 3.8, 4.0),
        "memory": (0.0, 0.1, 0.2, 0.5, 0.9, 1.1),
        "device": (0.0, 0.05, 0.1, 0.4, 0.8, 1.0),
    }.items()
}


def wanted(
    task: str, model: str, devices: Sequence[str]
) -> tuple[RunConfig, tuple[tuple[str, str], ...]]:
    """What is profiled: a run, and each feed on each device, the slowest feed first."""
    feeds = ("dataloader", *(feed for feed in FEEDS if feed != "dataloader"))
    setups = tuple((feed, device) for device in devices for feed in feeds)
    return RunConfig.with_recipe(task=task, model=model), setups


def draw(task: str, devices: Sequence[str], recorded: Sequence[Record]) -> None:
    """The model, the button, and the lanes of every feed on every device."""
    with controls.row():
        model = controls.model("profiled_model")
        PANEL.buttons("Take it apart", wanted(task, model, devices))
    with controls.row():
        question = "with a `DataLoader`, which part of a step takes longest?"
        guessed = guess.ask("profile_guess", question, PARTS, ran=PANEL.ran)
    elsewhere = records.of(recorded, "breakdowns")
    shown = PANEL.follow(
        lambda job: result(
            job,
            guessed,
            [e for e in elsewhere if e[1].config.model == job.arguments[0].model],
        )
    )
    if not shown and elsewhere:
        _draw([], elsewhere)
    elif not shown:
        with figures.example("Take it apart"):
            _lanes([(_feed(feed), each, False) for feed, each in EXAMPLE.items()])


def result(
    job: Job, guessed: str | None, elsewhere: Sequence[tuple[str, StepProfile]]
) -> None:
    """The lanes, a sentence for each, and the traces."""
    found = list(job.value or reported(job, StepProfile))
    if not job.ended:
        setups = len(job.arguments[1])
        slot(f"Profiling: {len(found)} of {setups} done", len(found) / setups)
    if not found or guess.missing(guessed):
        return
    for textbook in [each for each in found if each.feed == "dataloader"][:1]:
        text = f"{_bar(textbook)}: **{textbook.largest}** takes longest, "
        text += f"{textbook.share:.0%} of a step."
        guess.judge(text, guessed, textbook.largest)
    _draw(found, elsewhere)
    downloads.both("breakdown", [row for each in found for row in each.rows()])
    traces = {_bar(each): each.trace for each in found if each.trace is not None}
    if traces and job.ended:
        with controls.row():
            chosen = st.selectbox("Trace", list(traces), key="trace", width=260)
            downloads.button(
                "Trace for Perfetto",
                traces[chosen],
                "trace.json.gz",
                "trace_gz",
                mime="application/gzip",
            )
        st.markdown(
            "The trace has three steps. Open it at "
            "[ui.perfetto.dev](https://ui.perfetto.dev)."
        )


def _draw(
    found: Sequence[StepProfile], elsewhere: Sequence[tuple[str, StepProfile]] = ()
) -> None:
    """The lanes of what was measured here, then of what was recorded."""
    setups = [(_bar(each), each, False) for each in found]
    setups += [(f"{_bar(each)}, {label}", each, True) for label, each in elsewhere]
    chart, beside = st.columns([6, 4], gap="medium")
    with chart:
        _lanes([(name, each.spans, recorded) for name, each, recorded in setups])
        st.markdown(_stopwatches([each for _, each, _ in setups]))
    with beside:
        figures.bullets(
            f"**{name}**: {format.precise(each.seconds)} a step. The longest part is "
            f"**{each.largest}**, {each.share:.0%} of it."
            for name, each, _ in setups
        )
        st.markdown("**What takes the time there**")
        figures.bullets(
            f"**{part.capitalize()}**: {remedy}"
            for part, remedy in REMEDIES.items()
            if part in {each.largest for _, each, _ in setups}
        )
    first = setups[0][1]
    steps = f"n = {len(first.step)} steps"
    lanes = f"the mean of the middle half of {steps}, synchronized after each part"
    if first.overlaps:
        lanes = f"the median of {steps}, synchronized only at its end"
    alone = ", ".join(format.precise(median(each.unprofiled)) for each in found)
    alone = f" Without the profiler, a step took {alone}." * bool(alone)
    figures.caption(
        f"{NAMES[first.config.model]}, batch {first.config.batch_size:,}. Each lane: "
        f"{lanes}.{alone}",
        first,
    )


def _lanes(setups: Sequence[tuple[str, Sequence[Span], bool]]) -> None:
    """A lane for the host of each, and one for its device where that is another."""
    rows, clocks = [], []
    for name, spans, recorded in setups:
        lanes = list(dict.fromkeys(span.lane for span in spans))
        end = max(span.end for span in spans)
        for lane in lanes:
            own = [span for span in spans if span.lane == lane]
            called = name if len(lanes) == 1 else f"{name}: {lane}"
            stops = max(span.end for span in own)
            wrong = stops < end
            text = f"{format.precise(stops)}{' ✗ too early' * wrong}"
            clocks.append((called, stops * 1e3, text, wrong))
            rows += [
                (called, s.part, s.start * 1e3, s.end * 1e3, recorded) for s in own
            ]
    st.altair_chart(
        charts.lanes(
            pd.DataFrame(rows, columns=["lane", "part", "start", "end", "recorded"]),
            pd.DataFrame(clocks, columns=["lane", "at", "text", "wrong"]),
        ),
        alt="When load, copy, forward, backward and optimizer go on in a step",
    )


def _stopwatches(found: Sequence[StepProfile]) -> str:
    """What a clock would read that does not wait for the device."""
    early = {
        each.stopwatch(HOST) / each.stopwatch(DEVICE): each
        for each in found
        if each.stopwatch(HOST) < each.stopwatch(DEVICE)
    }
    if not early:
        return (
            "On the CPU, one lane does everything: a stopwatch stopped when `step()` "
            "returns is right. An accelerator keeps working after that, in a lane of "
            "its own."
        )
    return (
        "**✗ A stopwatch that doesn't wait** stops when the host is done: with "
        f"{format.SAID[early[min(early)].feed]}, it reads {min(early):.0%} of the "
        "true time."
    )


def _bar(each: StepProfile) -> str:
    return f"{_feed(each.feed)}, {each.environment.backend}"


def _feed(feed: str) -> str:
    """Where its batches come from, as a lane is called."""
    said = format.SAID[feed]
    return said[:1].upper() + said[1:]
