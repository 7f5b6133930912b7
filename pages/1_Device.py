"""What hardware is here, why torch uses what it uses, and how to ask."""

import json

import streamlit as st

from core.machine.diagnosis import CAUSES, diagnose
from core.ui import diagnosis, downloads, frame, machine, parallel
from core.ui.sections import sections
from core.ui.server import explained
from core.ui.source import code_tabs

frame.begin("Device")

facts = None
with (
    explained("The worker could not inspect the machine"),
    st.spinner("The worker is inspecting the machine"),
):
    facts, devices, answers = machine.facts(), machine.devices(), machine.answers()
if facts is None:
    frame.end("Device")
    st.stop()
found = diagnose(facts)
said, way = st.columns([5, 4], gap="medium", vertical_alignment="center")
with said:
    machine.verdict(found)
with way:
    diagnosis.draw(found)
machine.watch(facts)


def ask() -> None:
    st.markdown("All three just ran on this machine. The answer is next to each.")
    machine.idioms(answers)
    machine.trap(answers, devices[0])


def why() -> None:
    parallel.draw()


def default() -> None:
    with explained("The default device could not be tried"):
        with st.spinner("Tensors are being made"):
            compared = machine.default_device()
        machine.default_places(compared)


def code() -> None:
    code_tabs(
        (
            "The check",
            "`is_available()` only asks the driver. This shows whether each device "
            "really computes. From `core/machine/facts.py`.",
            "core.machine.facts:try_to_compute",
        ),
        (
            "The diagnosis",
            f"{len(CAUSES)} functions look at the facts in turn, and the first that "
            "applies is the answer. From `core/machine/diagnosis.py`; all of them "
            "are listed below it.",
            "core.machine.diagnosis:diagnose",
            machine.causes(found),
        ),
        (
            "The block",
            "From `core/machine/default_device.py`; `places` runs the expressions of "
            "“A default device”.",
            "core.machine.default_device:with_block",
        ),
        (
            "The setting",
            "The same with the setting, in a process of its own.",
            "core.machine.default_device:with_setting",
        ),
    )


def report() -> None:
    text = json.dumps(machine.report(found, facts, devices), indent=2)
    st.markdown(
        "You'll get an answer on a forum faster if you include these facts. The report "
        "names hardware, versions and settings, but no person, no host and no folder.",
        width=frame.PROSE,
    )
    name, kind = "device-report.json", "application/json"
    downloads.button("Download the report", text, name, "download_report", mime=kind)
    st.code(text, language="json", wrap_lines=True, height=300)


sections(
    {
        "Three ways to ask": ask,
        "Why a GPU is fast": why,
        "A default device": default,
        "This machine": machine.cards,
        "The code that ran": code,
        "A report": report,
    }
)
frame.end("Device")
