"""Move a model to a device, go through a batch step by step, and see a copy's cost."""

from functools import partial

import streamlit as st

from core.lessons.model import (
    batch_steps_page,
    default_device_page,
    model_to_page,
    port_page,
)
from core.lessons.model.transfers_page import TransfersLab
from core.ui import dataset, frame, lab

LABS = (TransfersLab,)

frame.begin("Model")
machine = frame.machine()
model, device = model_to_page.settings(machine)


def batch() -> None:
    batch_steps_page.draw(dataset.default_task(machine), model, device)
    model_to_page.forget(device)


frame.sections(
    {
        "Before and after": port_page.draw,
        "One batch, step by step": batch,
        "In place, or a copy?": partial(
            model_to_page.in_place, device, machine.devices[0]
        ),
        "Move a model": partial(model_to_page.draw, model, device),
        "A default device": default_device_page.draw,
        **lab.sections(LABS, machine),
    },
    more=("Move a model", "A default device", "What a transfer costs"),
)
with st.expander("The code behind this page", icon=":material/code:"):
    model_to_page.code()
frame.end("Model")
