"""Which devices this machine has, which one torch uses and why, and how to find out."""

from functools import partial

import streamlit as st

from core.lessons.device import diagnosis_page
from core.lessons.device import machine_page as machine
from core.lessons.device.diagnosis import diagnose
from core.ui import frame, simulated
from core.ui.lab import labs
from core.ui.server import engine, explained

frame.begin("Device")

facts = None
with (
    explained("The worker could not inspect the machine"),
    st.spinner("The worker is inspecting the machine"),
):
    facts, devices = machine.facts(), machine.devices()
if facts is None:
    frame.end("Device")
    st.stop()
diagnosis = diagnosis_page.for_visitor(diagnose(facts))
left, right = st.columns([5, 4], gap="medium", vertical_alignment="center")
with left:
    diagnosis_page.verdict(diagnosis)
with right:
    diagnosis_page.draw(diagnosis)
machine.watch(facts)


def ask() -> None:
    with explained("The worker could not look for a device"):
        answers = machine.answers()
        machine.idioms(answers)
        machine.trap(answers)
        description = engine().machine()
        if description and description.simulates:
            with explained("The simulated accelerator did not respond"):
                machine.simulated_idioms(answers, machine.simulated_answers())
        elif description:
            simulated.tell(description)


def why() -> None:
    if engine().machine() is None:
        st.markdown(frame.LOADING)
        return
    for lab in labs("device"):
        lab.draw(frame.machine())


def here() -> None:
    machine.cards()
    with st.expander("A report for a forum", icon=":material/description:"):
        machine.report(diagnosis, facts, devices)


frame.sections(
    {
        "Three ways to ask": ask,
        "Why a GPU is fast": why,
        "This machine": here,
        "Another machine": partial(diagnosis_page.another, facts),
    }
)
with st.expander("The code behind this page", icon=":material/code:"):
    diagnosis_page.code(diagnosis)
frame.end("Device")
