"""Small copies against large ones, as the Speed page shows them."""

from statistics import median

import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Machine
from core.measure.speedup import paired
from core.speed.results import ITEM, ONCE, CopiesLab
from core.ui import controls, downloads, figures, format, guess
from core.ui.charts import speed as charts
from core.ui.job_panel import JobPanel, slot
from core.ui.lab import SIDES, Lab

GUESSES = ("About as long", "2 to 10 times as long", "More than 10 times as long")
LAB = Lab(
    "Small copies",
    "Every copy costs something before its first byte moves. So copy a lot at once, "
    "and leave results on the device until the loop is over.",
    "copies",
    JobPanel("core.speed.copies:measure", "The measurement", "run_copies_lab"),
    ":material/show_chart: Guess, then measure: the time of the same bytes in "
    "1 to 10,000 pieces appears here, and three ways to fetch losses.",
    "The pieces are views of one tensor. The last three differ in where the host "
    "waits. From `core/speed/copies.py`.",
    (
        ("Pieces", "core.speed.copies:copy_pieces"),
        (".item()", "core.speed.copies:fetch_items"),
        (".cpu()", "core.speed.copies:fetch_with_cpu"),
        ("Once", "core.speed.copies:fetch_once"),
    ),
    on_a_cpu=" There's no accelerator here, so the copies stay in the CPU's memory. "
    "Each call still has its price, but there's nothing to wait for.",
)


def draw(machine: Machine) -> None:
    """The guess, the curve over the number of pieces, and three ways to fetch."""
    LAB.begin(machine)
    question = "how long do 16 MB take in 10,000 pieces, compared with one piece?"
    device = machine.devices[0].device
    with controls.row():
        guessed = guess.ask("copies_guess", question, GUESSES, ran=LAB.panel.ran)
        LAB.buttons((device,))
    LAB.follow(lambda job: result(job, guessed))


def result(job: Job, guessed: str | None) -> None:
    done: CopiesLab | None = job.value
    if done is None:
        if not job.ended:
            slot("Measuring: it takes a few seconds at most")
        return
    if guess.missing(guessed):
        return
    one, many = done.copied[0], done.copied[-1]
    times = paired(many.seconds, one.seconds).median
    backend = done.environment.backend
    chart, words = st.columns(SIDES)
    chart.altair_chart(
        charts.pieces(
            figures.readings(done.copied, "pieces", microseconds=1e6), backend
        ),
        alt="Time of the same bytes over the number of pieces, both logarithmic",
    )
    with words:
        guess.judge(
            f"{format.power_of_two(one.bytes)} in {many.pieces:,} pieces take "
            f"**{format.rounded(times)} times** as long as in one.",
            guessed,
            GUESSES[guess.scale(times)],
        )
        st.markdown(pieces_in_words(done))
    chart, words = st.columns(SIDES)
    with chart:
        st.markdown(
            f"**Fetching a number from each of {done.fetched[0].steps:,} steps**"
        )
        st.altair_chart(
            charts.fetches(
                figures.readings(done.fetched, "way", milliseconds=1e3), backend
            ),
            alt="Milliseconds of three ways to fetch a number from each step",
        )
    words.markdown(fetches_in_words(done))
    figures.caption(
        f"Median of n = {len(one.seconds)} repeats in turn after a warm-up, "
        "synchronized; the shade and the lines span the middle half.",
        done,
    )
    downloads.both("small_copies", done.rows())


def pieces_in_words(done: CopiesLab) -> str:
    """What a further piece costs, and where that begins to show."""
    one, many = done.copied[0], done.copied[-1]
    extra = median(many.seconds) - median(one.seconds)
    if extra <= 0:
        return "Here the pieces cost nothing that could be measured."
    text = (
        "Each additional piece costs about "
        f"**{format.precise(extra / (many.pieces - one.pieces))}**, whatever is in it; "
        f"a piece of {many.pieces:,} has {format.size(many.bytes / many.pieces)}."
    )
    if done.environment.backend == "CPU":
        text += (
            " Here that is the call alone. On an accelerator each copy has to be set "
            "up and waited for as well, so a piece costs more."
        )
    return text


def fetches_in_words(done: CopiesLab) -> str:
    """How much fetching in every step costs, and why it may cost nothing here."""
    found = {each.way: each.seconds for each in done.fetched}
    times = paired(found[ITEM], found[ONCE])
    low, high = format.middle_half(times.ratios)
    if done.environment.backend == "CPU":
        why = (
            "On the CPU a number is there as soon as the call returns, so there's "
            "nothing to wait for and a fetch is cheap. On an accelerator, each fetch "
            "stops the host until the device has finished all its work."
        )
    else:
        why = (
            "Each fetch stops the host until the device has finished all its work, and "
            "then the device idles until the host gives it more."
        )
    return (
        f"`.item()` in every step takes **{format.times(times.median)} times** as long "
        "as fetching all numbers at the end (middle half of the pairs: "
        f"{format.times(low)} to {format.times(high)}). {why}"
    )
