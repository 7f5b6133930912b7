"""Climb from the textbook loop to the limit of the machine."""

import streamlit as st

from core.ui import dataset, frame
from core.ui.course import lesson
from core.ui.source import show
from core.ui.speed import copies, ladder, loader, memory, vectorize

HERE = lesson("Speed")

frame.begin(HERE)
machine = frame.machine()
has_data = dataset.is_here(machine)

st.subheader("The ladder")
st.markdown(
    "The loop of every tutorial, then one change after the other. Guess what each "
    "brings before you look: on another machine the answers differ."
)
ladder.draw(machine, has_data)
with st.expander("How it is measured", icon=":material/timer:"):
    show(
        "Each rung begins with the same weights. Some steps come first, so that no "
        "epoch pays for what is set up in them; then every epoch is timed from an idle "
        "device to an idle device. From `core/speed/climb.py`.",
        "core.speed.climb:measure",
        "The rate that the limit is computed with, from `core/speed/roofline.py`.",
        "core.speed.roofline:matmul_rate",
    )

for lab in (loader, memory, vectorize, copies):
    lab.draw(machine)

frame.question(
    "compile_pays",
    "`torch.compile` takes 20 s to build its kernels and then saves 0.1 s in every "
    "epoch. You train for 50 epochs. Is it worth it?",
    {
        "Yes, every epoch is faster": "Every epoch is, the whole run is not: 50 times "
        "0.1 s is 5 s, and 20 s went by before the first step.",
        "No, it pays after 200 epochs": "Yes: 20 s over 0.1 s. On a model that trains "
        "for days, or is compiled once and used a million times, it is another matter.",
        "It depends on the batch size": "The batch size changes both numbers, and then "
        "you measure again. With these two numbers the answer is known.",
    },
    right="No, it pays after 200 epochs",
)
frame.end(HERE)
