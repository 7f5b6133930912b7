"""The controls by which a run's owner changes its learning rate or pauses the run."""

import math
from typing import Any

import streamlit as st

from core.results import PAUSE_SECONDS
from core.ui import answers, class_rules, format
from core.ui.runs import Run
from core.ui.server import engine, noticed, room, tell_notice, visitor
from to_device.words import Words

STEPS = range(-4, 5)  # slider positions around the run's rate, a factor of √10 apart
NAMED = 6  # how many of the newest changes are listed
RACE = "home_race"  # key of the stored answer with the runs of the Home page's race
words = Words(__file__)


def setting() -> None:
    if not class_rules.holds(("learning_rate",)):
        st.toggle(
            "Steer the run",
            key="steer_it",
            persist_state="session",
            help=words("steer.setting"),
        )


def draw(current: Run) -> None:
    """Draw a slider and a pause button for the run's owner until the run has ended."""
    job, config = current.job, current.config
    tell_notice()
    if job.ended or job.owner != visitor() or class_rules.holds(("learning_rate",)):
        return
    if current.id in (answers.of_visitor().get(RACE) or {}):
        return  # a race compares settings, so its runs can't be steered
    state, control = st.session_state, engine().control(current.id)
    rate = control.learning_rate or config.learning_rate
    if rate != state.get("steer_shown"):  # changed in another tab: draw a new slider
        state.steer_shown, state.steer_number = rate, control.number
    key = f"steer_rate_{current.id}_{state.steer_number}"
    is_running = job.status == "running"
    pause = current.pause
    is_paused = pause is not None and pause.is_on
    left = pause.left if pause else PAUSE_SECONDS
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.select_slider(
            "Learning rate",
            rates(config.learning_rate),
            rate,
            key=key,
            format_func="{:g}".format,
            on_change=_set_rate,
            args=(current.id, key),
            disabled=not is_running,
            width="stretch",
        )
        st.button(
            "Resume" if is_paused else "Pause",
            icon=":material/play_arrow:" if is_paused else ":material/pause:",
            key="steer_pause",
            on_click=_steer,
            args=(current.id,),
            kwargs={"paused": not is_paused},
            disabled=not is_running or not left,
        )
    is_constant = config.schedule == "constant"
    text = (
        "The next step uses the rate that you choose. The chart marks each change."
        if is_constant
        else words("steer.one_cycle")
    )
    if is_paused:
        text = (
            "The run is paused. Other people may need the machine, so the "
            "run continues by itself in {left} s."
        ).format(left=f"{left:.0f}")
    elif not left:
        text = (
            "This run has already been paused for {most} s, the longest time allowed."
        ).format(most=f"{PAUSE_SECONDS:.0f}")
    elif room().member(visitor()):
        text += " A run that was steered doesn't count toward your class's quest."
    st.markdown(f":small[{text}]")


def rates(rate: float) -> list[float]:
    """`rate` itself, and learning rates around it, rounded to one significant digit."""
    around = (rate * 10 ** (step / 2) for step in STEPS if step)
    rounded = {float(f"{rate:.0e}") for rate in around if math.isfinite(rate)}
    return sorted({*rounded, rate} - {0.0})


def _set_rate(run_id: str, key: str) -> None:
    state = st.session_state
    state.steer_shown = state[key]
    _steer(run_id, learning_rate=state[key])


def _steer(run_id: str, **control: Any) -> None:
    with noticed():  # the class's rules may be newer than the page
        engine().steer(run_id, visitor(), **control)


def in_words(run: Run) -> str:
    """Sentences on the learning rates that were set by hand; "" if none was."""
    if not run.changes:
        return ""
    rates = ", ".join(
        f"{change.learning_rate:g} from step {change.step + 1:,}"
        for change in run.changes[-NAMED:]
    )
    times = format.counted(len(run.changes), "time")
    newest = " These are the latest changes." if len(run.changes) > NAMED else ""
    return (
        f"**{run.name} was steered by hand** {times}.{newest} The "
        f"learning rate was {rates}."
    )
