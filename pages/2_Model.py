"""Move a model, go through one batch step by step, and see what a copy costs."""

import streamlit as st

from core.ui import dataset, format, frame
from core.ui.move import batch_steps, forgotten, model_to, transfers
from core.ui.sections import sections
from core.ui.source import code_tabs

frame.begin("Model", wide=True)
machine = frame.machine()
here = [each.device for each in machine.devices]

model, device = model_to.settings(here)
virtual = device == "meta"
real = here[0] if virtual else device  # where values can be looked at


def stepped() -> None:
    task = dataset.default_task(machine)
    where = f" on {format.NAMES.get(real, real)}"
    if virtual:
        where = ". It runs on the CPU, since `meta` tensors have no values to look at"
    st.markdown(
        f"One real batch of {format.NAMES[task]} goes through the "
        f"{format.NAMES[model]}{where}. First comes the move, then the five steps."
    )
    batch_steps.stepper(task, model, real)
    forgotten.draw(device)


def moved() -> None:
    model_to.draw(model, device)


def copied() -> None:
    model_to.in_place(device, machine.devices[0])


def timed() -> None:
    transfers.draw(here)


def code() -> None:
    code_tabs(
        (
            "The move",
            "What the table of tensors was made from, in `core/move/model_to.py`.",
            "core.move.model_to:move",
        ),
        (
            "The move and the five steps",
            "The steps of the batch, with a stop after each, in "
            "`core/move/batch_steps.py`.",
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


sections(
    {
        "One batch, step by step": stepped,
        "Move a model": moved,
        "In place, or a copy?": copied,
        "What a transfer costs": timed,
        "The code that ran": code,
    }
)
frame.end("Model")
