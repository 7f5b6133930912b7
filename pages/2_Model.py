"""Move a model, go through one batch step by step, and see what a copy costs."""

import streamlit as st

from core.config import IMAGE_MODELS
from core.errors import ExplainedError
from core.ui import dataset, format, frame
from core.ui.course import lesson
from core.ui.move import batch_steps, model_to, transfers
from core.ui.server import engine, visitor
from core.ui.source import source
from core.ui.train import live

HERE = lesson("Model")

frame.begin(HERE)
state = st.session_state
machine = engine().machine()
if machine is None:
    st.markdown(":material/hourglass: The workers are loading torch.")
    st.stop()
here = [each.device for each in machine.devices]
jobs = state.setdefault("model_jobs", {})

with st.container(horizontal=True, vertical_alignment="bottom"):
    model = st.selectbox(
        "Model",
        IMAGE_MODELS,
        format_func=format.NAMES.get,
        key="moved_model",
        width=152,
    )
    device = st.selectbox(
        "Device",
        [*here, "meta"],
        index=0 if len(here) > 1 else len(here),  # where there is something to move
        format_func=lambda name: format.NAMES.get(name, name),
        key="moved_to",
        width=152,
        help="Meta keeps shapes and drops values: a device that every machine has.",
    )
    pressed = st.button(
        "Move it", type="primary", icon=":material/move_down:", key="move_model"
    )
real = here[0] if device == "meta" else device  # where values can be looked at
if pressed:
    state.moved = (model, device)
    if (model, device) not in jobs:
        jobs[model, device] = engine().submit(
            "core.move.model_to:time_move", model, device, owner=visitor()
        )

st.subheader("Move it")
if state.get("moved") != (model, device):
    st.markdown(
        ":material/table: Press **Move it**: every parameter and buffer of the model "
        "appears here, with its device before and after."
    )
else:
    try:
        moved = engine().ask("core.move.model_to:move", model, device)
    except ExplainedError as error:
        st.error(str(error), title="The model was not moved")
    else:
        model_to.table(moved)
        live.follow_job(
            jobs[model, device], "The timing", lambda job: model_to.time(job, moved)
        )

st.subheader("In place, or a copy?")
try:
    values, findings = model_to.findings(device)
    model_to.demonstrations(values)
    st.markdown(
        "**And an optimizer that was built before the move?** It holds the parameters "
        "by reference, and its state has a device too. On the CPU nothing moves, so "
        "there two moves that every machine has are tried: to `meta`, and to "
        "`float64`, which goes through the module in the same way."
    )
    model_to.optimizer(findings, machine.devices[0])
    st.markdown("Move the model first, then build the optimizer: that always works.")
except ExplainedError as error:
    st.error(str(error), title="The lab has no answer")

st.subheader("One batch, step by step")
task = "fashion-mnist" if dataset.is_here(machine) else "sprites"
st.markdown(
    f"A real batch of {format.NAMES[task]}, the {format.NAMES[model]}, on "
    f"{format.NAMES.get(real, real)}. Go through the loop as the computer does."
)
batch_steps.stepper(task, model, real)

st.subheader("What a transfer costs")
if len(here) == 1:
    st.markdown(
        "There is no accelerator here, so nothing can be sent to one. A copy **within "
        "the host** shows the same two things: a fixed price for each copy, and a "
        "bandwidth that it levels out at."
    )
measuring = engine().job(state.get("transfer_id", ""))
with st.container(horizontal=True):
    if st.button(
        "Measure it",
        icon=":material/timer:",
        key="measure_transfers",
        disabled=measuring is not None and not measuring.ended,
    ):
        state.transfer_id = engine().submit(
            "core.move.transfers:measure", here[0], owner=visitor()
        )
        st.rerun()
    if measuring is not None and not measuring.ended:
        st.button(
            "Cancel",
            icon=":material/stop:",
            key="cancel_transfers",
            on_click=engine().cancel,
            args=(measuring.id,),
        )
if measuring is None:
    st.markdown(
        ":material/show_chart: Copies of 4 KB to 256 MB are timed where training runs; "
        "their GB/s appear here over their size."
    )
else:
    live.follow_job(measuring.id, "The measurement", transfers.draw)

st.subheader("The code that ran")
move, step, copies, timer = st.tabs(
    ["The move", "The five steps", "The copies", "The timer"]
)
with move:
    st.markdown("What the table above was made from, in `core/move/model_to.py`.")
    st.code(source("core.move.model_to:move"), line_numbers=True)
with step:
    st.markdown(
        "The steps above, with a stop after each, in `core/move/batch_steps.py`."
    )
    st.code(source("core.move.batch_steps:walk"), line_numbers=True)
with copies:
    st.markdown("Each kind of copy that is timed, in `core/move/transfers.py`.")
    copied = source(
        "core.move.transfers:host_copies"
        if len(here) == 1
        else "core.move.transfers:device_copies"
    )
    st.code(copied, line_numbers=True)
with timer:
    st.markdown(
        "Synchronize before the clock starts and before it stops, or you time how fast "
        "the work is queued. From `core/measure/timing.py`."
    )
    st.code(source("core.measure.timing:measure_side_by_side"), line_numbers=True)

frame.question(
    "moved_without_assigning",
    "You write `model.to(device)` and `x.to(device)`, each on a line by itself, and "
    "then `model(x)`. What happens on an accelerator?",
    {
        "Both are moved, it works": "The model is moved, since a module moves in "
        "place. But `x.to(device)` made a copy, and nobody kept it: `x` is still on "
        "the host.",
        "It fails: the model is on the device, x is on the host": "Yes. A module moves "
        "in place, a tensor is copied. Write `x = x.to(device)`.",
        "It fails: x is on the device, the model is on the host": "The other way "
        "round: look at the two functions under “In place, or a copy?”.",
    },
    right="It fails: the model is on the device, x is on the host",
)
frame.end(HERE)
