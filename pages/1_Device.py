"""What hardware is here, why torch uses what it uses, and how to ask."""

import json

import streamlit as st

from core.machine.diagnosis import CAUSES, diagnose
from core.ui import downloads, frame, machine
from core.ui.server import explained
from core.ui.source import code_tabs

frame.begin("Device")

facts = None
with (
    explained("The worker could not look around"),
    st.spinner("The worker is looking around"),
):
    facts, devices, answers = machine.facts(), machine.devices(), machine.answers()
if facts is None:
    frame.end("Device")
    st.stop()
found = diagnose(facts)
machine.verdict(found)

st.subheader("The devices")
machine.cards(facts)
st.markdown(
    "Memory counts all programs together, and is asked of the worker every "
    f"{machine.LIVE_SECONDS:.0f} seconds. Train in another tab and watch it here."
)

st.subheader("Three ways to ask for a device")
st.markdown("All three ran on the worker just now; their answers stand beside them.")
machine.idioms(answers)
st.markdown(
    "One trap: without `is_available()` in front, "
    "`torch.accelerator.current_accelerator()` tells what this torch was **built** "
    f"for, here or not. On this machine it answers **`{answers['unchecked']}`**."
)

st.subheader("A default device")
with explained("The default device was not tried"):
    with st.spinner("Tensors are being made"):
        compared = machine.default_device()
    machine.default_places(compared)

st.subheader("The code that ran")
code_tabs(
    (
        "The check",
        "`is_available()` asks the driver. Whether the GPU computes shows this, "
        "on every device. From `core/machine/facts.py`.",
        "core.machine.facts:try_to_compute",
    ),
    (
        "The diagnosis",
        f"{len(CAUSES)} functions look at the facts in turn, and the first that "
        "applies has the say. From `core/machine/diagnosis.py`; under it, all of them.",
        "core.machine.diagnosis:diagnose",
        machine.causes(found),
    ),
    (
        "The block",
        "From `core/machine/default_device.py`; `places` runs the expressions above.",
        "core.machine.default_device:with_block",
    ),
    (
        "The setting",
        "The same with the setting, in a process of its own.",
        "core.machine.default_device:with_setting",
    ),
)

st.subheader("Ask for help with it")
report = json.dumps(machine.report(found, facts, devices), indent=2)
st.markdown(
    "A question on a forum is answered faster with these facts in it. The report names "
    "hardware, versions and settings, but no person, no host and no folder."
)
downloads.button(
    "Download the report",
    report,
    "device-report.json",
    "download_report",
    mime="application/json",
)
with st.expander("Read it first", icon=":material/visibility:"):
    st.code(report, language="json", wrap_lines=True)

frame.end("Device")
