"""A loop against vectorized code, as the Speed page shows it."""

import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.speed.results import NUMPY, PYTHON, TORCH, Vectorized, VectorizeLab
from core.ui import controls, downloads, figures, format, guess
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.lab import SIDES, Lab

LAB = Lab(
    "Vectorize",
    "How far is each point of the plane from each of ten class means? The same "
    "distances as a loop in Python, as one expression in NumPy, and as the same "
    "expression in torch.",
    "distances",
    JobPanel("core.speed.vectorize:measure", "The measurement", "run_vectorize_lab"),
    ":material/bar_chart: Guess, then measure: a bar for each way, for one "
    "point, a thousand and a hundred thousand, appears here.",
    "`points[:, None] - means` subtracts every mean from every point: that is "
    "broadcasting. From `core/speed/vectorize.py`.",
    (
        ("Python loop", "core.speed.vectorize:python_loop"),
        ("NumPy", "core.speed.vectorize:with_numpy"),
        ("torch", "core.speed.vectorize:with_torch"),
    ),
)


def draw(machine: Machine) -> None:
    """The guess, the bars, and where a call costs more than its work."""
    LAB.begin(machine)
    best = machine.devices[0]
    ways = [PYTHON, NUMPY, TORCH]
    if best.backend != "CPU":
        ways.append(f"torch on {best.backend}")
    with controls.row():
        question = "which is fastest for a single point?"
        guessed = guess.ask("vectorize_guess", question, ways, ran=LAB.panel.ran)
        LAB.buttons((best.device,))
    LAB.follow(lambda job: result(job, guessed))


def result(job: Job, guessed: str | None) -> None:
    done: VectorizeLab | None = job.value
    found = list(done.found) if done else reported(job, Vectorized)
    if not job.ended:
        slot(f"Measuring: {format.counted(len(found), 'timing')} so far")
    if not found or guess.missing(guessed):
        return
    bars = figures.readings(found, "points", "way", microseconds=1e6)
    chart, words = st.columns(SIDES)
    chart.altair_chart(
        charts.vectorized(bars.assign(points=bars["points"].map(_points))),
        alt="Time of each way for each number of points, logarithmic",
    )
    if done is None:
        return
    with words:
        times = done.at(min(each.points for each in found))
        best = min(times, key=times.__getitem__)
        text = f"For a single point **{best}** is fastest: "
        text += f"{format.precise(times[best])}."
        guess.judge(text, guessed, best, say=str)
        figures.bullets(in_words(done))
    repeats = {each.points: len(each.seconds) for each in found}
    compared = [
        environment
        for way, environment in done.environments.items()
        if way not in (PYTHON, NUMPY)
    ]
    ns = ", ".join(f"{n} for {_points(points)}" for points, n in repeats.items())
    st.caption(
        f"Median of repeats in turn, n = {ns}; the line spans the middle half. Each "
        "way starts from its own lists, arrays or tensors; converting is not counted. "
        f"NumPy {done.numpy}. {done.date[:10]}. {figures.elsewhere(*compared)}"
    )
    downloads.both("vectorize", done.rows())


def in_words(done: VectorizeLab) -> list[str]:
    """Who wins at each size, by how much, and that all agree."""
    lines = []
    sizes = list(dict.fromkeys(each.points for each in done.found))
    for points in sizes:
        times = done.at(points)
        best, *_, slowest = sorted(times, key=times.__getitem__)
        most = format.rounded(done.times_as_fast(points, best, slowest))
        text = (
            f"{_points(points).capitalize()}: **{best}** is {most} times as fast as "
            f"{slowest}"
        )
        if PYTHON not in (slowest, best):
            loop = format.rounded(done.times_as_fast(points, best, PYTHON))
            text += f" and {loop} times as fast as the loop"
        lines.append(f"{text}.")
    torch_way, seconds = list(done.at(sizes[0]).items())[-1]
    worst = max(each.difference for each in done.found)
    return [
        *lines,
        f"Calls have a price of their own: {format.precise(seconds)} for this "
        f"expression with {torch_way}, even for a single point. They pay off when one "
        "of them replaces many turns of a loop.",
        f"All of them agree: the greatest difference from the loop is {worst:.1e}. "
        "Arrays and tensors are float32, Python counts in float64.",
    ]


def _points(count: int) -> str:
    return format.counted(count, "point")
