"""A model on its way to a device, as the Model page shows it."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Environment
from core.move.results import Move, MoveTime, OptimizerFinding
from core.ui import controls, figures, format
from core.ui.job_panel import JobPanel, slot
from core.ui.server import engine, explained
from core.ui.source import source

WHEN = {
    "after": "Built after the move",
    "before": "Built before the move",
    "used": "Built and used before the move",
}
DEMONSTRATIONS = {
    "copy_of_a_tensor": "**A tensor is copied**: `x` stays where it is.",
    "module_in_place": "**A module is moved in place**: `.to()` returns the module "
    "itself.",
    "what_a_module_moves": "**Its parameters and buffers are moved**, and nothing else "
    "that it has.",
}
STAND_INS = (
    "On the CPU nothing moves, so two moves that every machine can make are tried: to "
    "`meta` and to `float64`. The two differ, and **a GPU behaves like `float64`**: "
    "the module keeps its parameters and exchanges only their data, so an optimizer "
    "still holds them. But the state of one that was used stays as it was, and its "
    "step fails. On `meta` the parameters are new ones."
)
PANEL = JobPanel(
    "core.move.model_to:time_move",
    "The timing",
    "move_model",
    failed="The measurement failed",
)


def settings(devices: Sequence[str]) -> tuple[str, str]:
    """What is moved, and where to; for the whole page."""
    with controls.row():
        model = controls.model("moved_model")
        device = controls.choice(
            "Device",
            "moved_to",
            [*devices, "meta"],
            index=0 if len(devices) > 1 else 1,  # where there is something to move
        )
        if device == "meta":
            real = devices[0]
            with st.popover("What is `meta`?"):
                st.markdown(
                    "A device that every torch has. Its tensors have shapes but no "
                    "values. That's enough to watch a model move without an "
                    "accelerator. The batch needs real values, so it runs on "
                    f"{format.NAMES.get(real, real)}."
                )
    return model, device


def draw(model: str, device: str) -> None:
    """The button, and then every tensor of the model, before and after."""
    pressed = st.button(
        "Move it", type="primary", icon=":material/move_down:", key="move_model"
    )
    panel = replace(PANEL, about=lambda *arguments: arguments == (model, device))
    if "moved" not in st.session_state and (known := PANEL.job):
        st.session_state.moved = known.arguments  # before a reload
    if pressed:
        st.session_state.moved = (model, device)
        if panel.job is None:
            panel.submit(model, device)
    if st.session_state.get("moved") != (model, device):
        st.code(f"model = {format.NAMES[model]}()\nmodel.to({device!r})")
        return
    with explained("The model was not moved"):
        moved = engine().ask("core.move.model_to:move", model, device)
        left, right = st.columns([6, 4])
        with right:
            weight(moved)
            panel.follow(lambda job: time(job, moved))
        with left:
            table(moved)
        buffers(moved)
        with st.expander("What makes a buffer", icon=":material/code:"):
            demonstration("what_a_module_moves", device)


def weight(move: Move) -> None:
    """How many tensors have moved, and what they weigh."""
    moved = sum(each.before != each.after for each in move.tensors)
    shown = {
        "Tensors moved": f"{moved} of {len(move.tensors)}",
        "Bytes in all": format.size(sum(each.bytes for each in move.tensors)),
    }
    if move.allocated_before is not None:
        shown["On the device before"] = format.size(move.allocated_before)
        shown["On the device after"] = format.size(move.allocated_after)
    figures.metrics(shown)


def table(move: Move) -> None:
    """Every parameter and buffer, before and after."""
    figures.table(
        [
            (
                *(each.name, each.before, each.after, each.bytes),
                *(format.shape(each.shape), each.dtype, each.kind),
            )
            for each in move.tensors
        ],
        ["Name", "Before", "After", "Bytes", "Shape", "dtype", "Kind"],
        "Every parameter and buffer with its device before and after the move",
        column_config={"Bytes": st.column_config.NumberColumn(format="localized")},
    )


def buffers(move: Move) -> None:
    """Which of the tensors are not parameters, and why they are moved too."""
    found = [each.name for each in move.tensors if each.kind == "buffer"]
    of_these = (
        f"{len(found)} of these tensors are **buffers**, such as `{found[0]}`: the "
        "running averages of batch norm, and how many batches they come from. "
        if found
        else "All of these are parameters. The CNN has **buffers** too, the running "
        "averages of its batch norm layers. "
    )
    st.markdown(
        f"{of_these}A buffer is a tensor that belongs to a module but is not learned: "
        "it has no gradient and isn't among `parameters()`. Because it was registered "
        "with `register_buffer`, `.to` moves it and the `state_dict` has it. The class "
        "weights of a `CrossEntropyLoss` are a buffer as well."
    )


def time(job: Job, move: Move) -> None:
    """Seconds of the move, once they are measured."""
    timed: MoveTime | None = job.value
    if not job.ended:
        slot("The move is being timed, with a new model for each repeat.")
    if timed is None:
        return
    seconds = median(timed.seconds)
    device = move.tensors[0].after
    weight = sum(each.bytes for each in move.tensors)
    took = (
        f"`model.to(device)` takes **{format.precise(seconds)}** "
        f"({format.spread(timed.seconds)}, n = {len(timed.seconds)})"
    )
    why = (
        f": {weight / seconds / 1e9:.2g} GB/s. Small tensors are slow to copy, since "
        "each copy costs some microseconds before its first byte."
    )
    if device == move.tensors[0].before:
        why = (
            f": the time it takes to check. The tensors are on the {device.upper()} "
            "already, so nothing is copied."
        )
    elif device == "meta":
        why = ". Nothing is copied: meta keeps shapes and drops values."
    st.markdown(took + why)
    figures.caption("Median of the repeats.", timed)


def in_place(device: str, environment: Environment) -> None:
    """A tensor is copied, a module is not; and what becomes of an optimizer."""
    with explained("The lab has no answer"):
        for name in ("copy_of_a_tensor", "module_in_place"):
            demonstration(name, device)
        with st.expander("What if you built the optimizer before the move?"):
            optimizer(device, environment)


def demonstration(name: str, device: str) -> None:
    """The code of one of DEMONSTRATIONS, and what its expressions are here."""
    found = ask("core.move.model_to:tried", device)[name]
    st.markdown(DEMONSTRATIONS[name])
    code, answers = st.columns([3, 2])
    code.code(source(f"core.move.model_to:{name}"))
    rows = [(f"`{expression}`", value) for expression, value in found.items()]
    answers.table(
        pd.DataFrame(rows, columns=["Expression", "Is now"]),
        hide_index=True,
        alt=f"What the expressions of {name} are",
    )


def optimizer(device: str, environment: Environment) -> None:
    """What becomes of one that was built before the model was moved."""
    st.markdown("It holds the parameters by reference, and its state has a device too.")
    if device in ("cpu", "meta"):
        st.markdown(STAND_INS)
    findings = ask("core.move.model_to:optimizer_findings", device)
    moves = [
        (f"`to({each.target})`", WHEN[each.when], outcome(each)) for each in findings
    ]
    st.table(
        pd.DataFrame(moves, columns=["Move", "AdamW", "What a step does then"]),
        hide_index=True,
        alt="What an optimizer does after its model was moved",
    )
    st.caption(f"Tried just now with torch {environment.torch}.")
    st.markdown("Move the model first, then build the optimizer: that always works.")


@st.cache_data(ttl=600, show_spinner=False)
def ask(address: str, device: str) -> Any:
    """What the lab found out about moves to this device, in the last ten minutes."""
    return engine().ask(address, device)


def outcome(each: OptimizerFinding) -> str:
    """What a step of the optimizer does after the move, in words."""
    if each.error:
        return f"**It fails.** {each.error}"
    if not each.holds_the_parameters:
        return "**The model does not learn**: AdamW has the old tensors"
    return "The step changes nothing" if each.weights_changed is False else "It works"
