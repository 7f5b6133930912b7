"""Which devices this machine has, which one torch uses and why, and how to find out."""

from functools import partial

import streamlit as st

from core.lessons.device import diagnosis_page, machine_page
from core.lessons.device.parallel_page import Parallel
from core.ui import frame, simulated
from core.ui.server import engine, explained
from to_device.diagnose.diagnosis import diagnose

LABS = (Parallel,)

frame.begin("Device")

facts = None
with (
    explained("The machine could not be inspected"),
    st.spinner("The app is inspecting the machine"),
):
    facts, devices = machine_page.facts(), machine_page.devices()
if facts is None:
    frame.end("Device")
    st.stop()
diagnosis = diagnosis_page.for_visitor(diagnose(facts))
left, right = st.columns([5, 4], gap="medium", vertical_alignment="center")
with left:
    diagnosis_page.verdict(diagnosis)
with right:
    diagnosis_page.draw(diagnosis)
machine_page.watch(facts)


def ask() -> None:
    with explained("torch could not be asked for a device"):
        answers = machine_page.answers()
        machine_page.idioms(answers)
        machine_page.trap(answers)
        machine = engine().machine()
        if machine and machine.simulates:
            with explained("The simulated accelerator did not respond"):
                machine_page.simulated_idioms(answers, machine_page.simulated_answers())
        elif machine:
            simulated.tell(machine)


def why() -> None:
    if engine().machine() is None:
        st.markdown(frame.LOADING)
        return
    for kind in LABS:
        kind().draw(frame.machine())


def this_machine() -> None:
    machine_page.cards()
    with st.expander("A report for a forum", icon=":material/description:"):
        machine_page.report(diagnosis, facts, devices)


frame.sections(
    {
        "Three ways to ask": ask,
        "Why a GPU is fast": why,
        "This machine": this_machine,
        "Another machine": partial(diagnosis_page.another, facts),
    },
    more=("This machine", "Another machine"),
)
with st.expander("The code behind this page", icon=":material/code:"):
    diagnosis_page.code(diagnosis)
frame.end("Device")
