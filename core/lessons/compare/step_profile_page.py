"""The time of each part of a training step, as the Compare page shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.config import FEEDS, RunConfig
from core.jobs.job import Job
from core.lessons.compare.step_profile_result import (
    HOST,
    PARTS,
    StepProfile,
)
from core.measure import rounding
from core.measure.environment import Machine
from core.ui import charts, controls, dataset, figures, format
from core.ui.charts import Chart
from core.ui.job_panel import reported
from core.ui.lab import Finding, Guess, Lab
from to_device.words import capitalized

SEEN = 0.002  # a shorter share of the chart's width is less than a pixel
Profiles = tuple[StepProfile, ...]


class StepProfileLab(Lab):
    key = "take_apart"
    file = "breakdown"
    job_name = "The profile"
    asks_below = finding_above = True
    judged = "always"
    code = (
        ("A step", "core.lessons.compare.step_profile:step"),
        ("Your own script", "core.lessons.compare.step_profile:profile_it"),
    )

    def settings(self, machine: Machine) -> tuple:
        return self.defaults(machine, controls.model("profiled_model"))

    def defaults(self, machine: Machine, model: str = "ann") -> tuple:
        """A run's settings, and pairs (feed, device); the slowest feeds come first."""
        feeds = ("dataloader", *(feed for feed in FEEDS if feed != "dataloader"))
        devices = [device.device for device in machine.devices]
        setups = tuple((feed, device) for device in devices for feed in feeds)
        task = dataset.default_task(machine)
        return RunConfig.with_recipe(task=task, model=model), setups

    def asks(self, *_: Any) -> Guess:
        return Guess("profile_guess", self.words["question"], PARTS)

    def progress(self, job: Job) -> tuple[str, float]:
        done, setups = len(reported(job, StepProfile)), len(job.arguments[1])
        return f"Profiling: {done} of {setups} done", done / setups

    def gather(self, job: Job) -> Profiles:
        """The profiles so far. Their large traces are missing until the job ends."""
        profiles = job.value or tuple(reported(job, StepProfile))
        if not job.ended:
            return tuple(replace(profile, trace=None) for profile in profiles)
        return profiles

    def finding(self, profiles: Profiles) -> Finding | None:
        for profile in profiles:
            if profile.feed == "dataloader":
                text = f"{setup(profile)}: **{profile.largest}** takes the longest, "
                return Finding(f"{text}{profile.share:.0%} of a step.", profile.largest)
        return None

    def chart(self, profiles: Profiles) -> None:
        """Draw each setup's lanes: the host's, and the device's if it has a queue."""
        rows, clocks = [], []
        for profile in profiles:
            name, spans = setup(profile), profile.spans
            lanes = list(dict.fromkeys(span.lane for span in spans))
            for lane in lanes:
                own = [span for span in spans if span.lane == lane]
                title = name if len(lanes) == 1 else f"{name}: {lane}"
                stop = max(span.end for span in own)
                early = stop < profile.seconds
                text = rounding.precise(stop)
                if early:
                    text += " ✗ too early"
                clocks.append((title, stop * 1e3, text, early))
                rows += [(title, s.part, s.start * 1e3, s.end * 1e3) for s in own]
        # A part that is too short to be seen would puzzle people in the legend.
        seen = SEEN * max(end for *_, end in rows)
        long = {part for _, part, start, end in rows if end - start > seen}
        hues = dict(zip(PARTS, charts.palette().runs, strict=False))
        hues = {part: hue for part, hue in hues.items() if part in long}
        rows = [row for row in rows if row[1] in hues]
        st.altair_chart(
            lane_chart(rows, clocks, hues),
            alt="When each part of a step runs, from loading to the optimizer",
        )
        shares = {p.stopwatch(HOST) / p.seconds: p.feed for p in profiles}
        share = min(shares)
        if share < 1:
            st.markdown(
                "**✗ A stopwatch that doesn't wait** stops when the host is done. With "
                f"{format.VALUES[shares[share]]}, the clock shows {share:.0%} of the "
                "true time."
            )
        else:
            st.markdown(self.words["one_lane"])

    def lines(self, profiles: Profiles) -> None:
        figures.bullets(
            f"**{setup(profile)}**: a step takes {rounding.precise(profile.seconds)}. "
            f"The longest part is **{profile.largest}**, at {profile.share:.0%}."
            for profile in profiles
        )
        st.markdown("**Where the time goes, and what helps**")
        figures.bullets(
            f"**{part.capitalize()}**: {remedy}"
            for part, remedy in self.words["remedies"].items()
            if part in {profile.largest for profile in profiles}
        )

    def below(self, profiles: Profiles) -> None:
        traces = {setup(p): p.trace for p in profiles if p.trace}
        if traces:
            with controls.row():
                name = st.selectbox(
                    "Trace", list(traces), key=f"trace{self.suffix}", width=260
                )
                controls.download(
                    "Trace for Perfetto",
                    traces[name],
                    "trace.json.gz",
                    f"trace_gz{self.suffix}",
                    mime="application/gzip",
                )
            st.markdown(self.words["trace"])

    def caption(self, profiles: Profiles) -> str:
        first = profiles[0]
        steps = f"n = {len(first.step)} steps"
        lanes = (
            f"the median of {steps}, synchronized only at the end of each step"
            if first.overlaps
            else f"the mean of the middle half of {steps}, synchronized after each part"
        )
        alone = format.enumerated(
            rounding.precise(median(profile.unprofiled)) for profile in profiles
        )
        return (
            f"{format.NAMES[first.config.model]}, batch {first.config.batch_size:,}. "
            f"Each lane shows {lanes}: believe its shares. For how long a step takes, "
            f"believe the steps without the profiler: {alone} (top to bottom)."
        )


def setup(profile: StepProfile) -> str:
    """The name of a profile's feed and backend, such as "Data in memory, CUDA"."""
    return f"{capitalized(format.VALUES[profile.feed])}, {profile.environment.backend}"


def lane_chart(
    parts: Sequence[tuple],
    stopwatches: Sequence[tuple],
    hues: Mapping[str, str],
    title: str = "Milliseconds since the step began",
) -> Chart:
    """A bar from start to end of each part, in its hue and in its lane: host or device.

    The fields of `parts` are lane, part, start and end. Those of `stopwatches` are
    lane, at (when the stopwatch stops), text, and early (whether that is too early).
    The axis' `title` names the unit of the times.
    """
    frame = pd.DataFrame(parts, columns=["lane", "part", "start", "end"])
    clocks = pd.DataFrame(stopwatches, columns=["lane", "at", "text", "early"])
    colors = charts.palette()
    names = list(dict.fromkeys(frame["lane"]))
    lane = alt.Y("lane:N").title(None).scale(domain=names).axis(charts.above(23))
    x = alt.X("start:Q").title(title)
    most = max(frame["end"].max(), clocks["at"].max())
    room = charts.before(clocks["text"])
    bars = (
        alt.Chart(frame)
        .mark_bar(height=18)
        .encode(
            x=x.scale(domain=[0, most], nice=False, range=room),
            x2="end:Q",
            y=lane,
            color=charts.hues("part", hues, hues.values(), columns=3),
            tooltip=charts.tips(lane="Lane", part="Part")
            + charts.tips(".3g", start="From", end="To"),
        )
    )
    clock = alt.Chart(clocks).encode(x="at:Q", y=lane)
    ink = charts.either("datum.early", colors.wrong, colors.text)
    stop = clock.mark_tick(height=28, thickness=2).encode(color=ink)
    text = clock.mark_text(align="left", dx=6).encode(text="text:N", color=ink)
    return alt.layer(bars, stop, text).properties(height=alt.Step(54))
