"""Move a model, go through one batch step by step, and see what a copy costs."""

import streamlit as st

from core.ui import dataset, format, frame
from core.ui.move import batch_steps, model_to, transfers
from core.ui.source import code_tabs

frame.begin("Model")
machine = frame.machine()
here = [each.device for each in machine.devices]

model, device = model_to.draw(here)
real = here[0] if device == "meta" else device  # where values can be looked at

st.subheader("In place, or a copy?")
model_to.in_place(device, machine.devices[0])

st.subheader("One batch, step by step")
task = dataset.default_task(machine)
st.markdown(
    f"A real batch of {format.NAMES[task]}, the {format.NAMES[model]}, on "
    f"{format.NAMES.get(real, real)}. Go through the loop as the computer does."
)
batch_steps.stepper(task, model, real)

st.subheader("What a transfer costs")
transfers.draw(here)

st.subheader("The code that ran")
code_tabs(
    (
        "The move",
        "What the table above was made from, in `core/move/model_to.py`.",
        "core.move.model_to:move",
    ),
    (
        "The five steps",
        "The steps above, with a stop after each, in `core/move/batch_steps.py`.",
        "core.move.batch_steps:walk",
    ),
    (
        "The copies",
        "Each kind of copy that is timed, in `core/move/transfers.py`.",
        "core.move.transfers:host_copies"
        if len(here) == 1
        else "core.move.transfers:device_copies",
    ),
    (
        "The timer",
        "Synchronize before the clock starts and before it stops, or you time how "
        "fast the work is queued. From `core/measure/timing.py`.",
        "core.measure.timing:measure_side_by_side",
    ),
)

frame.end("Model")
