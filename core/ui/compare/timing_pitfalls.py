"""Three ways of timing the same product, and what each of them would report."""

from collections.abc import Sequence
from statistics import fmean, median

import pandas as pd
import streamlit as st

from core.compare.results import WAYS, Reading, TimingLab
from core.jobs.job import Job
from core.measure.records import Record
from core.measure.speedup import paired
from core.ui import controls, downloads, figures, format, guess
from core.ui.charts import compare as charts
from core.ui.compare import records
from core.ui.job_panel import JobPanel, reported, slot

GUESSES = ("About as long", "Two to ten times as long", "More than ten times as long")
EXAMPLE = tuple(  # milliseconds of nobody's machine
    Reading(way, tuple(each / 1e3 for each in (first, *[later] * 9)))
    for way, first, later in zip(WAYS, (60.0, 62.0, 3.0), (0.2, 3.1, 3.0), strict=True)
)
PANEL = JobPanel("core.compare.timing_pitfalls:measure", "The measurement", "time_it")


def draw(devices: Sequence[str], recorded: Sequence[Record]) -> None:
    """The guess, the button, every call on a chart; then what was recorded."""
    with controls.row():
        guessed = guess.ask(
            "timing_guess",
            "how long does the first `a @ b` take, compared with a later one?",
            GUESSES,
            ran=PANEL.ran,
        )
        PANEL.buttons("Time it", (devices[0],))
    if not PANEL.follow(lambda job: result(job, guessed)):
        with figures.example("Time it"):
            _chart(EXAMPLE)
    for label, other in records.of(recorded, "labs"):
        with st.expander(f"Recorded: {label}"):
            readings(other)


def result(job: Job, guessed: str | None) -> None:
    """The readings, once the learner has guessed."""
    done: TimingLab | None = job.value
    if not job.ended:
        ways = len(reported(job, Reading))
        text = f"Timing each way in a process of its own: {ways} of {len(WAYS)} done"
        slot(text, ways / len(WAYS))
    if done is None or guess.missing(guessed):
        return
    factor = first_call(done)
    text = (
        f"The first call took **{format.times(factor)} times** as long as a later one."
        if factor >= 1
        else "The first call took **no longer** than a later one here: "
        f"{format.times(factor)} times as long."
    )
    guess.judge(text, guessed, GUESSES[guess.scale(factor)])
    readings(done)
    downloads.both("timing", done.rows())


def first_call(done: TimingLab) -> float:
    """The first call over a later one, both synchronized."""
    (honest,) = (r.seconds for r in done.readings if r.way == "synchronize")
    return honest[0] / median(honest[1:])


def wrong(found: Sequence[Reading]) -> dict[str, bool]:
    """Of each way, whether the mean of all its calls misleads by a quarter or more.

    The truth is the median of what was both synchronized and warmed up.
    """
    truth = median(next(r.seconds for r in found if r.way == WAYS[-1]))
    means = {reading.way: fmean(reading.seconds) for reading in found}
    return {
        way: way != WAYS[-1] and not 0.75 < mean / truth < 1.25
        for way, mean in means.items()
    }


def readings(done: TimingLab) -> None:
    """Every call on a chart, and beside it what each way would report."""
    misleads = wrong(done.readings)
    chart, beside = st.columns([6, 4], gap="medium")
    with chart:
        _chart(done.readings)
        size, n = done.size, len(done.readings[0].seconds)
        figures.caption(
            f"{size:,} × {size:,}, n = {n} calls in each way, each in a new process.",
            done,
        )
    with beside:
        figures.table(
            [
                {
                    "Timed": way,
                    "Later calls": format.precise(median(later)),
                    "Mean of all": f"{'✗' if misleads[way] else '✓'} "
                    + format.precise(fmean((first, *later))),
                }
                for way, (first, *later) in ((r.way, r.seconds) for r in done.readings)
            ],
            alt="Median of the later calls and mean of all for each way of timing",
        )
        st.markdown(_in_words(done))
    _threads(done)


def _chart(found: Sequence[Reading]) -> None:
    """Every call, those of a way that misleads in red and with crosses."""
    marks = {way: f"{'✗' if bad else '✓'} {way}" for way, bad in wrong(found).items()}
    calls = [
        (marks[reading.way], call, seconds * 1e3)
        for reading in found
        for call, seconds in enumerate(reading.seconds, 1)
    ]
    st.altair_chart(
        charts.readings(
            pd.DataFrame(calls, columns=["way", "call", "milliseconds"]),
            dict(zip(marks.values(), wrong(found).values(), strict=True)),
        ),
        alt="Milliseconds of each call for three ways of timing, logarithmic",
    )


def _in_words(done: TimingLab) -> str:
    """What the naive clock is worth here."""
    if done.environment.backend == "CPU":
        return "On the CPU, naive and synchronized readings mean the same. " + (
            "Only the first call stands out: a warm-up leaves it out, a mean over "
            "all calls hides it."
            if first_call(done) >= 2
            else "Here the first call does not even stand out from the others; on an "
            "accelerator, which has more to set up, it does."
        )
    short = median(done.queueing)
    if short > 1.5:
        return (
            f"After the first call, the naive clock reads 1/{short:.3g} of the truth "
            f"(median of {len(done.queueing)} pairs of readings, in turn): it only "
            "times how fast the work is queued."
        )
    return (
        "Here the naive clock is nearly right, because it had to wait for a full "
        "queue. Don't count on that."
    )


def _threads(done: TimingLab) -> None:
    st.markdown("**The CPU's own trap: threads**")
    chart, beside = st.columns([6, 4], gap="medium")
    rows = []
    found: dict[str, dict[int, Sequence[float]]] = {}
    for each in done.threads:
        size, typical = f"{each.size:,} × {each.size:,}", median(each.seconds)
        found.setdefault(size, {})[each.threads] = each.seconds
        row = {
            "Matrices": size,
            "Threads": each.threads,
            "Median": format.precise(typical),
            "Spread": format.spread(each.seconds),
        }
        rows.append(row)
    with chart:
        alt = "The same product with one thread and with all of them"
        figures.table(rows, alt=alt)
    sentences = [
        f"At {size}, {max(times)} threads are {typical}× as fast as one "
        f"(middle half of the pairs: {low}× to {high}×)."
        for size, times in found.items()
        if len(times) > 1
        for over in [paired(times[1], times[max(times)])]
        for typical, low, high in [
            map(format.rounded, (over.median, *format.middle_half(over.ratios)))
        ]
    ]
    beside.markdown(
        " ".join(sentences)
        + " Threads help when there is enough work to share and a free core for each. "
        "When you quote a time, say how many there were."
    )
    n, where = len(done.threads[0].seconds), figures.elsewhere(done.cpu_environment)
    st.caption(f"n = {n} in turn, each after a warm-up. {where}")
