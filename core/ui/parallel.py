"""Why a GPU is fast, and when it isn't, as the Device page shows it."""

from statistics import median

import streamlit as st

from core.jobs.job import Job
from core.machine.results import (
    AT_ONCE,
    IN_TURN,
    SHORT_VECTORS,
    Multiplications,
    Multiplied,
)
from core.measure.speedup import STEADY, agree
from core.ui import controls, figures, format, guess
from core.ui.charts import machine as charts
from core.ui.frame import PROSE
from core.ui.job_panel import JobPanel, reported, slot
from core.ui.server import engine
from core.ui.source import code_tabs

GUESSES = ("Less than 10 times", "10 to 1,000 times", "More than 1,000 times")
PANEL = JobPanel("core.machine.parallel:measure", "The measurement", "multiply")


def draw() -> None:
    """What it is about, the button, the figure and the code."""
    st.markdown(
        "A GPU is no faster at a single multiplication. It does thousands at once, "
        "which pays off when none has to wait for another's result. A layer of a "
        "model is such work: millions of multiplications that don't need each other.",
        width=PROSE,
    )
    machine = engine().machine()
    with controls.row():
        question = "how many times as fast as a Python loop is one core with torch?"
        guessed = guess.ask("multiply_guess", question, GUESSES, ran=PANEL.ran)
        PANEL.buttons("Measure it", (machine.devices[0].device,) if machine else None)
    PANEL.follow(
        lambda job: result(job, guessed),
        ":material/scatter_plot: What one multiplication takes, among many at once and "
        "in a chain, by a Python loop, one core, all cores, and an accelerator if "
        "there is one.",
    )
    with st.expander(PANEL.code_title, icon=":material/code:"):
        code_tabs(
            ("Python loop", "", "core.machine.parallel:python_loop"),
            ("At once", "", "core.machine.parallel:at_once"),
            ("In turn", "", "core.machine.parallel:in_turn"),
        )


def result(job: Job, guessed: str | None) -> None:
    """A dot for each way, and what they say."""
    done: Multiplications | None = job.value
    found = list(done.found) if done else reported(job, Multiplied)
    if not job.ended:
        slot(f"Measuring: {format.counted(len(found), 'way')} so far")
    if not found or guess.missing(guessed):
        return
    chart, words = st.columns([6, 4])
    chart.altair_chart(
        charts.multiplied(
            figures.readings(found, "work", "way", "device", nanoseconds=1e9)
        ),
        alt="Nanoseconds a multiplication by each way, logarithmic",
    )
    if done is None:
        return
    with words:
        _judge(done, guessed)
        figures.bullets(in_words(done))
    figures.caption(
        "Float32 matrices; the Python loop uses small ones in float64. Each time is "
        "the total divided by the number of multiplications; at once, each comes with "
        f"an addition. Median of n = {len(found[0].seconds)} repeats, the line spans "
        "the middle half.",
        done,
    )


def _judge(done: Multiplications, guessed: str | None) -> None:
    """How many times as fast one core is as the loop, beside the guess.

    That is right or wrong only where the repeats all say so.
    """
    seconds = {each.way: each.seconds for each in done.found if each.work == AT_ONCE}
    loop, core = seconds["Python loop"], seconds["One core"]
    least, typical, most = (
        min(loop) / max(core),
        median(loop) / median(core),
        max(loop) / min(core),
    )
    sure = _answer(least) == _answer(most)
    told = format.rounded(typical)
    if not sure:
        told = f"{format.rounded(least)} to {format.rounded(most)}"
    found = f"One core does it **{told} times** as fast as the loop."
    guess.judge(found, guessed if sure else None, _answer(typical))


def _answer(times: float) -> str:
    return GUESSES[(times >= 10) + (times > 1000)]


def in_words(done: Multiplications) -> list[str]:
    """How many times as fast each is as the one before it, and why."""
    many, chain = done.at(AT_ONCE), done.at(IN_TURN)
    loop, core = many["Python loop"], many["One core"]
    lines = [
        "**One core** is faster than the **loop** because no interpreter runs between "
        "multiplications, and its vector units do several in one instruction."
    ]
    if short := many.get(SHORT_VECTORS):
        lines.append(
            "**Short vectors**: with only four numbers per instruction, the core takes "
            f"{format.rounded(short / core)} times as long. A new process was started "
            "with `MKL_CBWR=COMPATIBLE`, which limits MKL, the library behind matrix "
            "products; torch's own kernels ignore it."
        )
    for way, seconds in many.items():
        if way not in ("Python loop", SHORT_VECTORS, "One core"):
            text = f"**{way}**: {format.times(core / seconds)} times as fast as one "
            busy = way == f"{done.cores} cores" and core < 1.2 * seconds
            lines.append(
                text + "core." + " Perhaps something else keeps them busy." * busy
            )
    times = ", ".join(f"{way} {format.precise(chain[way])}" for way in chain)
    lines.append(
        "**In a chain** nothing can run at the same time, and you pay torch's overhead "
        f"for every single multiplication: {times}. That is when a GPU isn't fast: "
        "small work, step by step."
    )
    if chain["Python loop"] < loop:
        lines.append(
            "The **Python loop** gains nothing at once: it does one multiplication at "
            "a time either way, and there each comes with an addition and a step "
            "through two lists."
        )
    unsteady = [each.way for each in done.found if not agree(each.seconds)]
    if unsteady:
        lines.append(
            f"The repeats of {' and '.join(dict.fromkeys(unsteady))} differ by more "
            f"than a factor of {STEADY:g}: something else was probably running, so "
            "trust these the least."
        )
    return lines
