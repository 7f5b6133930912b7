"""Three ways of timing the same product, as the Compare page shows them."""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.lessons.compare.timing_pitfalls_result import (
    WAYS,
    Reading,
    TimingLab,
    misleading,
    misleads,
)
from core.lessons.mistakes.catalogue_page import link_to
from core.measure import rounding
from core.measure.speedup import BUSY, paired, spanned
from core.ui import charts, figures, format
from core.ui.charts import LINES, MIDDLE, Chart
from core.ui.job_panel import reported
from core.ui.lab import SIDES, Finding, Guess, Lab

GUESSES = (
    "Less than twice as long",
    "Two to ten times as long",
    "More than ten times as long",
)


def _noted(text: str, misleads: bool) -> str:
    return f"{text} (misleads)" if misleads else text


class TimingPitfalls(Lab):
    key = "time_it"
    file = "timing"
    finding_above = True
    code = (("The stopwatch", "core.lessons.compare.timing_pitfalls:time_it"),)

    def asks(self, *_: Any) -> Guess:
        return Guess("timing_guess", self.words["question"], GUESSES)

    def progress(self, job: Job) -> tuple[str, float]:
        ways = len(reported(job, Reading))
        text = f"Timing with each method in its own process: {ways} of {len(WAYS)} done"
        return text, ways / len(WAYS)

    def finding(self, lab: TimingLab) -> Finding:
        first = lab.first_call
        by, note = rounding.times(first.ratio), "" if lab.is_steady else BUSY
        ends = first.interval
        if not lab.stands_out:
            by, note, ends = first.by, first.note or note, first.told
        text = f"The first call took **{by} times** as long as a later one. {note}"
        return Finding(text.rstrip(), spanned(GUESSES, (2, 10), *ends))

    def chart(self, lab: TimingLab) -> None:
        ways = misleading(lab)
        names = {way: _noted(way, bad) for way, bad in ways.items()}
        calls = [
            (names[reading.way], call, seconds * 1e3)
            for reading in lab.readings
            for call, seconds in enumerate(reading.seconds, 1)
        ]
        st.altair_chart(
            call_chart(
                pd.DataFrame(calls, columns=["way", "call", "milliseconds"]),
                {names[way]: bad for way, bad in ways.items()},
            ),
            alt="Milliseconds per call, timed with three methods, on a log scale",
        )
        n = len(lab.readings[0].seconds)
        figures.caption(
            f"We multiplied two {lab.size:,} × {lab.size:,} matrices, timed n = {n} "
            "calls with each method, and ran each method in a new process.",
            lab,
        )

    def lines(self, lab: TimingLab) -> None:
        rows = []
        for reading in lab.readings:
            times = median(reading.seconds[1:]), fmean(reading.seconds)
            noted = (
                _noted(rounding.precise(t), misleads(lab, reading.way, t))
                for t in times
            )
            rows.append((reading.way, *noted))
        figures.table(
            rows,
            ("Method", "Later calls", "Mean of all"),
            alt="Median of the later calls and mean of all calls, for each method",
        )
        short = median(lab.queueing)
        if lab.environment.backend == "CPU":
            kind = "first_call" if lab.stands_out else "no_first_call"
            st.markdown(f"{self.words['cpu']} {self.words[kind]}")
        elif short > 1.5:
            st.markdown(
                f"After the first call, the true time is {short:.3g} times the naive "
                f"time (median of {len(lab.queueing)} pairs of readings). The "
                "naive clock measures only how long queuing takes. So call "
                "`torch.accelerator.synchronize()` each time before you read the clock."
            )
        else:
            st.markdown(self.words["full_queue"])

    def below(self, lab: TimingLab) -> None:
        st.markdown("**A trap when you time the CPU: threads**")
        chart, words = st.columns(SIDES, gap="medium")
        rows = []
        seconds: dict[str, dict[int, Sequence[float]]] = {}
        for reading in lab.threads:
            size = f"{reading.size:,} × {reading.size:,}"
            seconds.setdefault(size, {})[reading.threads] = reading.seconds
            typical = rounding.precise(median(reading.seconds))
            spread = format.spread(reading.seconds)
            rows.append((size, reading.threads, typical, spread))
        with chart:
            figures.table(
                rows,
                ("Matrices", "Threads", "Median", "Spread"),
                alt="Time for the same product with one thread and with all threads",
            )
        sentences = []
        for size, by_threads in seconds.items():
            most = max(by_threads)
            if most > 1:
                speedup = paired(by_threads[1], by_threads[most])
                sentence = speedup.sentence("one thread", f"{most} threads")
                sentences.append(f"At {size}: {sentence}")
        words.markdown(" ".join([*sentences, self.words["threads"]]))
        n, cpu = len(lab.threads[0].seconds), lab.cpu_environment
        # The table names the numbers of threads, so the caption leaves them out.
        caption = f"n = {n} alternating repeats, each after a warm-up."
        if figures.elsewhere(cpu):
            caption += f" Measured on {cpu.device_name}."
        st.caption(caption)
        link_to("timing_unsynchronized")


def call_chart(frame: pd.DataFrame, misleads: dict[str, bool]) -> Chart:
    """Milliseconds of each call, logarithmic, with a line for each way of timing.

    `frame` has the columns way, call and milliseconds. `misleads` says of each
    way, in order, whether it misleads. The last way shows the truth.
    """
    colors = charts.palette()
    low, high = frame["milliseconds"].min() / 1.3, frame["milliseconds"].max() * 1.3
    fine = (
        (colors.cpu, "square"),
        (colors.quiet, "triangle-up"),
        (colors.right, "circle"),
    )
    looks = [
        (colors.wrong if bad else color, shape)
        for bad, (color, shape) in zip(misleads.values(), fine, strict=False)
    ]
    hues, shapes = zip(*looks, strict=True)
    calls = int(frame["call"].max())
    x = alt.X("call:Q").title("Call").scale(domain=[1, max(2, calls)], nice=False)
    y = alt.Y("milliseconds:Q").title("Milliseconds, logarithmic")
    shape = alt.Shape("way:N").scale(domain=list(misleads), range=list(shapes))
    chart = alt.Chart(frame).encode(
        x=x.axis(charts.ticks(charts.whole_numbers(calls), format="d")),
        y=y.scale(type="log", domain=[low, high], nice=False).axis(
            charts.ticks(charts.decades(low, high), format="~g")
        ),
        color=charts.hues("way", misleads, hues, **LINES, columns=2),
        tooltip=["way", "call", alt.Tooltip("milliseconds").format(".4g")],
    )
    points = chart.mark_point(filled=True, size=55, opacity=1)
    legend = alt.Legend(title=None, orient="top", columns=2)
    return alt.layer(
        charts.lines(chart, 1.2, opacity=0.6),
        points.encode(shape=shape.legend(legend)),
    ).properties(height=MIDDLE)
