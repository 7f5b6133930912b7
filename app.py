"""Home: what this is, the course map, this machine at a glance."""

import streamlit as st

from core.ui import format, frame
from core.ui.course import HOME, LESSONS
from core.ui.server import engine

frame.begin(HOME)
frame.wait_for_machine()

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


@st.fragment(run_every=5)
def this_machine() -> None:
    """Devices, memory, software and data, as they are now."""
    machine = engine().machine()
    if machine is None:
        if engine().problem:
            st.error(engine().problem, title="There are no workers")
        else:
            st.markdown(
                ":material/hourglass: The workers are starting and loading torch. What "
                "they find appears here in some seconds; you need not wait for it."
            )
    else:
        with st.grid(min_column_width=260):
            for device in machine.devices:
                color = frame.device_color(device.backend)
                with st.container(border=True, height="stretch"):
                    st.badge(device.backend, icon=":material/memory:", color=color)
                    st.markdown(f"**{device.device_name}**")
                    facts = (
                        f"{format.size(device.free_bytes)} of "
                        f"{format.size(device.total_bytes)} memory free"
                    )
                    if device.backend == "CPU":
                        facts += f"  \n{machine.cores} logical cores"
                    st.markdown(facts)
            with st.container(border=True, height="stretch"):
                st.badge("Software", icon=":material/terminal:", color="gray")
                software = machine.devices[0]
                st.markdown(f"**torch {software.torch}**")
                st.markdown(f"Python {software.python}  \n{software.system}")
            with st.container(border=True, height="stretch"):
                data = machine.fashion_mnist
                st.badge("Data", icon=":material/database:", color="gray")
                if data.problem:
                    st.markdown("**Fashion-MNIST can't be used**")
                    st.markdown(data.problem)
                elif data.source:
                    st.markdown("**Fashion-MNIST**, 60,000 + 10,000 images")
                    st.markdown("Checked against its SHA-256 sums")
                else:
                    st.markdown("**Sprites**, drawn by a program")
                    st.markdown("Fashion-MNIST can be fetched on the Train page")
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


this_machine()
