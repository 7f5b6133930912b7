"""Home: what this is, the course map, this machine at a glance."""

import streamlit as st

from core.measure.environment import Machine
from core.ui import format, frame
from core.ui.course import HOME, LESSONS
from core.ui.frame import Color
from core.ui.server import engine

frame.begin(HOME.title)

if st.button("Start training", type="primary", icon=":material/play_arrow:"):
    st.switch_page("pages/3_Train.py")

st.subheader("What you will be able to do")
st.markdown(
    """
- move a model and its batches to a device, and know which of the two you forgot
- train and evaluate on the CPU, on CUDA, ROCm, XPU or MPS with the same lines
- read a loss curve, and say from a chart why one run is faster than another
- save a model, load it elsewhere, and leave with a script that repeats your run
- tell an honest measurement from one that only looks like it
"""
)

st.subheader("The course")
with st.grid(min_column_width=260):
    for number, lesson in enumerate(LESSONS, 1):
        with st.container(border=True, height="stretch"):
            st.page_link(
                lesson.file, label=f"**{number}. {lesson.title}**", icon=lesson.icon
            )
            st.markdown(lesson.promise)

st.subheader("This machine")


def card(kind: str, icon: str, name: str, facts: str, color: Color = "gray") -> None:
    """One thing that this machine has."""
    with st.container(border=True, height="stretch"):
        st.badge(kind, icon=f":material/{icon}:", color=color)
        st.markdown(name)
        st.markdown(facts)


@st.fragment(run_every=5)
def this_machine() -> None:
    """Devices, memory, software and data, as they are now."""
    machine = engine().machine()
    if machine is None and engine().problem:
        st.error(engine().problem, title="There are no workers")
    elif machine is None:
        st.markdown(
            ":material/hourglass: The workers are starting and loading torch. What "
            "they find appears here in some seconds; you need not wait for it."
        )
    else:
        with st.grid(min_column_width=260):
            cards(machine)
        if len(machine.devices) == 1:
            st.markdown(
                "There is no accelerator that torch can use here. All lessons work on "
                "the CPU: the code is the same, only the word after `.to` is another."
            )
        st.page_link(
            "pages/1_Device.py",
            label="What this machine has, and why torch uses what it uses",
            icon=":material/memory:",
        )


def cards(machine: Machine) -> None:
    """Each device, the software, and the data."""
    for device in machine.devices:
        free, total = format.size(device.free_bytes), format.size(device.total_bytes)
        facts = f"{free} of {total} memory free"
        if device.backend == "CPU":
            facts += f"  \n{machine.cores} logical cores"
        color = frame.device_color(device.backend)
        card(device.backend, "memory", f"**{device.device_name}**", facts, color)
    software, data = machine.devices[0], machine.fashion_mnist
    facts = f"Python {software.python}  \n{software.system}"
    card("Software", "terminal", f"**torch {software.torch}**", facts)
    if data.problem:
        name, facts = "**Fashion-MNIST can't be used**", data.problem
    elif data.source:
        name = "**Fashion-MNIST**, 60,000 + 10,000 images"
        facts = "Checked against its SHA-256 sums"
    else:
        name = "**Sprites**, drawn by a program"
        facts = "Fashion-MNIST can be fetched on the Train page"
    card("Data", "database", name, facts)


this_machine()
