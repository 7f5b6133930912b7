"""Race two devices, see where timing goes wrong, and where the time goes."""

import streamlit as st

from core.ui import dataset, frame
from core.ui.compare import crossover, race, records, step_profile, timing_pitfalls
from core.ui.sections import sections
from core.ui.source import show

frame.begin("Compare")
machine = frame.machine()
devices = [each.device for each in machine.devices]
recorded = records.recordings()


def racing() -> None:
    st.subheader("Which one is faster?")
    race.draw(machine, dataset.is_here(machine), recorded)
    with st.expander(race.PANEL.code_title, icon=":material/code:"):
        show(
            "The race calls this for each contender in turn: the course's own loops, "
            "with a clock that is read only when the device is idle.",
            "core.compare.race:trial",
        )


def timing() -> None:
    st.subheader("Why is your timing wrong?")
    timing_pitfalls.draw(devices, recorded)
    with st.expander(timing_pitfalls.PANEL.code_title, icon=":material/code:"):
        show("core.compare.timing_pitfalls:time_it")


def profile() -> None:
    st.subheader("Where does the time go?")
    step_profile.draw(dataset.default_task(machine), devices, recorded)
    with st.expander(step_profile.PANEL.code_title, icon=":material/code:"):
        show("core.compare.step_profile:step")


def mapping() -> None:
    st.subheader("How big must the model be before the second device pays off?")
    st.markdown("A training step of a two-layer MLP, from small to large.")
    crossover.draw(machine, recorded)
    with st.expander(crossover.PANEL.code_title, icon=":material/code:"):
        show("core.compare.crossover:training_step")


sections(
    {
        "The race": racing,
        "The stopwatch": timing,
        "The profile": profile,
        "The map": mapping,
    }
)
frame.end("Compare")
