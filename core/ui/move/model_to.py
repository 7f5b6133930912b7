"""A model on its way to a device, as the Model page shows it."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import pandas as pd
import streamlit as st

from core.jobs.job import Job
from core.measure.environment import Environment
from core.move.results import Move, MoveTime, OptimizerFinding
from core.ui import controls, figures, format
from core.ui.job_panel import JobPanel
from core.ui.server import engine, explained
from core.ui.source import source

WHEN = {
    "after": "Built after the move",
    "before": "Built before the move",
    "used": "Built and used before the move",
}


PANEL = JobPanel("core.move.model_to:time_move", "The timing", "move_model")


def draw(devices: Sequence[str]) -> tuple[str, str]:
    """What is moved where, and then its tensors; returns the model and the device."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        model = controls.model("moved_model")
        device = controls.choice(
            "Device",
            "moved_to",
            [*devices, "meta"],
            index=0 if len(devices) > 1 else 1,  # where there is something to move
            help="Meta keeps shapes and drops values: a device that every machine has.",
        )
        pressed = st.button(
            "Move it", type="primary", icon=":material/move_down:", key="move_model"
        )
    panel = replace(PANEL, about=lambda *arguments: arguments == (model, device))
    if pressed:
        st.session_state.moved = (model, device)
        if panel.job is None:
            panel.submit(model, device)
    st.subheader("Move it")
    if st.session_state.get("moved") != (model, device):
        st.markdown(
            ":material/table: Press **Move it**: every parameter and buffer of the "
            "model appears here, with its device before and after."
        )
    else:
        with explained("The model was not moved"):
            moved = engine().ask("core.move.model_to:move", model, device)
            table(moved)
            panel.follow(lambda job: time(job, moved))
    return model, device


def table(move: Move) -> None:
    """Every parameter and buffer, before and after; what they weigh."""
    weight = sum(each.bytes for each in move.tensors)
    moved = sum(each.before != each.after for each in move.tensors)
    shown = {
        "Tensors moved": f"{moved} of {len(move.tensors)}",
        "Bytes in all": format.size(weight),
    }
    if move.allocated_before is not None and move.allocated_after is not None:
        shown["On the device before"] = format.size(move.allocated_before)
        shown["On the device after"] = format.size(move.allocated_after)
    figures.metrics(shown, 160)
    figures.table(
        [
            (
                each.name,
                each.kind,
                format.shape(each.shape),
                each.dtype,
                each.bytes,
                each.before,
                each.after,
            )
            for each in move.tensors
        ],
        ["Name", "Kind", "Shape", "dtype", "Bytes", "Before", "After"],
        "Every parameter and buffer with its device before and after the move",
        column_config={"Bytes": st.column_config.NumberColumn(format="localized")},
    )


def time(job: Job, move: Move) -> None:
    """Seconds of the move, once they are measured."""
    if job.value is not None:
        _time(job.value, move)
    elif not job.ended:
        st.info("The move is being timed, with a new model for each repeat.")


def _time(timed: MoveTime, move: Move) -> None:
    seconds = median(timed.seconds)
    device = move.tensors[0].after
    weight = sum(each.bytes for each in move.tensors)
    took = (
        f"`model.to(device)` takes **{format.precise(seconds)}** "
        f"({format.spread(timed.seconds)}, n = {len(timed.seconds)})"
    )
    if device == move.tensors[0].before:
        st.markdown(
            f"{took}: the time of looking. The tensors are on the {device.upper()} "
            "already, so nothing is copied."
        )
    elif device == "meta":
        st.markdown(f"{took}. No byte travels: meta keeps shapes and drops values.")
    else:
        st.markdown(
            f"{took}: {weight / seconds / 1e9:.2g} GB/s. Small tensors travel slowly, "
            "since each copy costs some microseconds before its first byte."
        )
    st.caption(f"Median; measured on {format.provenance(timed.environment)}.")


def in_place(device: str, environment: Environment) -> None:
    """A tensor is copied, a module is not; and what becomes of an optimizer."""
    with explained("The lab has no answer"):
        values, found = findings(device)
        demonstrations(values)
        st.markdown(
            "**And an optimizer that was built before the move?** It holds the "
            "parameters by reference, and its state has a device too. On the CPU "
            "nothing moves, so there two moves that every machine has are tried: to "
            "`meta`, and to `float64`, which goes through the module in the same way."
        )
        optimizer(found, environment)
        st.markdown(
            "Move the model first, then build the optimizer: that always works."
        )


@st.cache_data(ttl=600, show_spinner=False)
def findings(
    device: str,
) -> tuple[dict[str, dict[str, str]], tuple[OptimizerFinding, ...]]:
    """What the lab found out about moves to this device, in the last ten minutes."""
    return (
        engine().ask("core.move.model_to:both", device),
        engine().ask("core.move.model_to:optimizer_findings", device),
    )


def demonstrations(values: dict[str, dict[str, str]]) -> None:
    """The two functions of core.move.model_to beside what their expressions are."""
    titles = {
        "copy_of_a_tensor": "**A tensor is copied**: `x` stays where it is.",
        "module_in_place": "**A module is moved in place**: what it returns is itself.",
    }
    for name, found in values.items():
        st.markdown(titles[name])
        code, answers = st.columns([3, 2])
        code.code(source(f"core.move.model_to:{name}"))
        answers.table(
            pd.DataFrame(
                [(f"`{expression}`", value) for expression, value in found.items()],
                columns=["Expression", "Is now"],
            ),
            hide_index=True,
            alt=f"What the expressions of {name} are",
        )


def optimizer(findings: tuple[OptimizerFinding, ...], environment: Environment) -> None:
    """What became of an optimizer, in words, for each way of moving."""
    rows = []
    for each in findings:
        if each.error:
            outcome = f"**It fails.** {each.error}"
        elif not each.holds_the_parameters:
            outcome = "**The model does not learn**: AdamW has the old tensors"
        elif each.weights_changed is False:
            outcome = "The step changes nothing"
        else:
            outcome = "It works"
        rows.append((f"`to({each.target})`", WHEN[each.when], outcome))
    st.table(
        pd.DataFrame(rows, columns=["Move", "AdamW", "What a step does then"]),
        hide_index=True,
        alt="What an optimizer does after its model was moved",
    )
    st.caption(f"Tried just now with torch {environment.torch}.")
