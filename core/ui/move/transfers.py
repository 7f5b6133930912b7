"""What a transfer costs, as the Model page shows it."""

from collections.abc import Sequence
from statistics import quantiles

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure import records
from core.measure.speedup import agree
from core.move.results import Transfer, Transfers
from core.ui import controls, figures, format, guess
from core.ui.charts import move as charts
from core.ui.job_panel import JobPanel, reported, slot

HERE = "here"
GUESS = "transfers_guess"
GUESSES = ("Less than 5 GB/s", "5 to 20 GB/s", "More than 20 GB/s")
FALLS = 1.2  # a peak that is so many times the end of its curve is no plateau
PANEL = JobPanel("core.move.transfers:measure", "The measurement", "transfers")


def draw(devices: Sequence[str]) -> None:
    """The button, and the curves."""
    if len(devices) == 1:
        st.markdown(
            "There's no accelerator here to send anything to. A copy **within the "
            "host** shows a fixed cost for each copy too, and a bandwidth that depends "
            "on whether both ends fit in the cache."
        )
    where = "within the host" if len(devices) == 1 else "to the device"
    with controls.row():
        question = f"how fast is a copy of 256 MB {where}?"
        guessed = guess.ask(GUESS, question, GUESSES, ran=PANEL.ran)
        PANEL.buttons("Measure it", (devices[0],), key="measure_transfers")
    PANEL.follow(
        lambda job: result(job, guessed),
        ":material/show_chart: Copies of 4 KB to 256 MB are timed where training runs; "
        "their GB/s appear here over their size.",
    )


def result(job: Job, guessed: str | None) -> None:
    """The curves as far as they are measured, and where they level out."""
    done: Transfers | None = job.value
    measured = list(done.measured) if done else reported(job, Transfer)
    if not job.ended:
        slot(f"Measuring: {len(measured)} kinds and sizes of copies so far.")
    if not measured or guess.missing(guessed):
        return
    points = frame(measured)
    known, notices = records.records()
    elsewhere = []
    for record in known:
        found, problem = record.section("transfers", Transfer)
        elsewhere.append(frame(found, record.label))
        notices += [problem] if problem else []
    for notice in notices:
        st.warning(notice)
    chart, words = st.columns([6, 4])
    chart.altair_chart(
        charts.transfers(pd.concat([points, *elsewhere])),
        alt="Gigabytes per second over the size of a copy, both axes logarithmic",
    )
    if done is None:
        return
    with words:
        _judge(points, guessed)
        figures.bullets(levels(points))
        if _new_is_slower(points):
            st.markdown(
                "A large copy into new memory is slower, since the system has to hand "
                "out each page of it first."
            )
    n = sorted({len(each.seconds) for each in measured})
    figures.caption(
        f"Median of n = {' to '.join(map(str, n))} repeats after a warm-up; the "
        "shade spans the middle half of them.",
        done,
    )


def _judge(points: pd.DataFrame, guessed: str | None) -> None:
    """How fast the largest copy was, in the first direction, beside the guess."""
    there = points[points["direction"] == points["direction"].iloc[0]]
    large = there[there["bytes"] == there["bytes"].max()]
    best = large.loc[large["rate"].idxmax()]
    rate = float(best["rate"])
    found = f"{best['size']}, {best['direction']}: **{_speed(best)}**."
    if not _is_steady(best):
        found += " The repeats differ too much for a single figure: measure again when "
        found += "the machine is quiet."
        guessed = None
    guess.judge(found, guessed, GUESSES[(rate >= 5) + (rate > 20)])


def _speed(copy: pd.Series) -> str:
    """Of one kind and size: a figure, or from what to what where there is none."""
    if _is_steady(copy):
        return f"{format.rounded(copy['rate'])} GB/s"
    return f"{format.rounded(copy['low'])} to {format.rounded(copy['high'])} GB/s"


def _is_steady(copy: pd.Series) -> bool:
    return agree((float(copy["low"]), float(copy["high"])))


def _new_is_slower(points: pd.DataFrame) -> bool:
    """Whether new memory was, in the largest copy, by more than repeats differ."""
    large = points[points["bytes"] == points["bytes"].max()].set_index("memory")
    if not {"new memory", "memory used before"} <= set(large.index):
        return False
    return large.at["new memory", "high"] < large.at["memory used before", "low"]


def levels(points: pd.DataFrame) -> list[str]:
    """The time of the smallest copy, and the bandwidth of each kind at large sizes.

    A curve within the host that falls again is faster where both ends fit in the
    cache; that is said only where the repeats agree.
    """
    lines = []
    for kind, curve in points.groupby(["direction", "memory"], sort=False):
        small, large = curve.iloc[0], curve.iloc[-1]
        best = curve.iloc[int(curve["rate"].argmax())]
        text = f"levels out at **{_speed(large)}**"
        if best["rate"] > FALLS * large["rate"]:
            sure = _is_steady(best) and _is_steady(large)
            cached = sure and kind[0] == "host to host"
            text = f"**{_speed(best)}** at {best['size']}"
            text += ", which fits in the cache" * cached
            text += f"; **{_speed(large)}** at {large['size']}"
            text += ", which doesn't" * cached
        first = f"A copy of {small['size']} takes {format.precise(small['us'] / 1e6)}."
        lines.append(f"{', '.join(map(str, kind)).capitalize()}: {text}. {first}")
    return lines


def frame(measured: list[Transfer], where: str = HERE) -> pd.DataFrame:
    """A row a kind and size; GB/s as a median with the middle half of the repeats."""
    rows = []
    for each in measured:
        fast, typical, slow = quantiles(each.seconds)
        row = {
            "where": where,
            "direction": each.direction,
            "memory": each.memory,
            "bytes": each.bytes,
            "size": format.power_of_two(each.bytes),
            "us": typical * 1e6,
            "rate": each.bytes / typical / 1e9,
            "low": each.bytes / slow / 1e9,
            "high": each.bytes / fast / 1e9,
        }
        rows.append(row)
    return pd.DataFrame(rows)
