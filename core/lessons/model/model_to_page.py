"""Moving a model to a device, and forgetting a move, as the Model page shows them."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import streamlit as st

from core.jobs.job import Job
from core.lessons.mistakes.catalogue_page import link_to
from core.lessons.model import transfers_page
from core.lessons.model.model_result import Forgotten, Move, MoveTime, OptimizerFinding
from core.measure import rounding
from core.measure.environment import Environment, Machine
from core.ui import controls, figures, format, playground, simulated
from core.ui.job_panel import JobPanel, slot
from core.ui.server import ask, ask_once, explained
from core.ui.source import code_tabs, marked, show, source
from to_device.names import SIMULATED
from to_device.words import Words

ATTEMPT = "core.lessons.model.model_to:attempt"
FINDINGS = "core.lessons.model.model_to:optimizer_findings"
words = Words(__file__)

MOVES = ("model", "inputs", "labels", "loss")
PANEL = JobPanel(
    "core.lessons.model.model_to:time_move",
    "The timing",
    "move_model",
    failed="The measurement failed",
)


def settings(machine: Machine) -> tuple[str, str]:
    """Draw the choice of a model and a device for the whole page; return both."""
    # The simulated accelerator comes first, since a move to the CPU would move nothing.
    devices = [SIMULATED] if machine.simulates else []
    devices += [device.device for device in machine.devices]
    with controls.row():
        model = controls.model("moved_model")
        device = controls.choice("Device", "moved_to", devices, width=220)  # pixels
        simulated.tell(machine, width=440)
    return model, device


def draw(model: str, device: str) -> None:
    pressed = st.button(
        "Move it", type="primary", icon=":material/move_down:", key="move_model"
    )
    panel = replace(PANEL, about=lambda *arguments: arguments == (model, device))
    if "moved" not in st.session_state and (job := PANEL.job):  # the page was reloaded
        st.session_state.moved = job.arguments
    if pressed:
        st.session_state.moved = (model, device)
        # Moves to the simulated accelerator are never timed.
        if panel.job is None and device != SIMULATED:
            panel.submit(model, device)
    if st.session_state.get("moved") != (model, device):
        code = f"model = {format.NAMES[model]}()\nmodel = model.to({device!r})"
        st.code(code, wrap_lines=True)
        return
    outline = simulated.outline("move", device=device)
    with outline, explained("The model was not moved"):
        move: Move = ask("core.lessons.model.model_to:move", model, device)
        left, right = st.columns([7, 3])
        with right:
            moved = sum(tensor.before != tensor.after for tensor in move.tensors)
            metrics = {
                "Tensors moved": f"{moved} of {len(move.tensors)}",
                "Total size": format.size(sum(tensor.bytes for tensor in move.tensors)),
            }
            if move.allocated_before is not None:
                metrics["On the device before"] = format.size(move.allocated_before)
                metrics["On the device after"] = format.size(move.allocated_after)
            figures.metrics(metrics)
            if move.crossed:
                copies = transfers_page.in_words(move.crossed)
                st.markdown(f"{copies} {words('move.blocks')}")
            else:
                panel.follow(lambda job: time(job, move))
        with left:
            figures.table(
                [
                    (
                        *(tensor.name, tensor.kind, tensor.before, tensor.after),
                        *(tensor.bytes, format.shape(tensor.shape), tensor.dtype),
                    )
                    for tensor in move.tensors
                ],
                ["Name", "Kind", "Before", "After", "Bytes", "Shape", "dtype"],
                "Every parameter and buffer with its device before and after the move",
                formats={"Bytes": "localized"},
            )
        buffers = [tensor.name for tensor in move.tensors if tensor.kind == "buffer"]
        text = words("buffers.none")
        if buffers:
            text = (
                f"{len(buffers)} of these tensors are **buffers**, such as "
                f"`{buffers[0]}`. They hold batch norm's running averages and "
                "the number of batches averaged."
            )
        st.markdown(f"{text} {words('buffers.what')}")
        with st.expander("What makes a buffer", icon=":material/code:"):
            demonstration("what_a_module_moves", device)


def time(job: Job, move: Move) -> None:
    if not job.ended:
        slot("The app is timing the move with a new model for each repeat.")
    timed: MoveTime | None = job.value
    if timed is None:
        return
    seconds = median(timed.seconds)
    tensors = move.tensors
    device = tensors[0].after
    if device == tensors[0].before:
        why = (
            f". The tensors are already on the {device.upper()}, so PyTorch only "
            "checks where each tensor is, and copies nothing."
        )
    else:
        rate = sum(tensor.bytes for tensor in tensors) / seconds / 1e9
        why = (
            f": {rate:.2g} GB/s. Small tensors are slow to copy for their size, "
            "because a copy takes a few microseconds before its first byte moves."
        )
    st.markdown(
        f"`model.to(device)` takes **{rounding.precise(seconds)}** "
        f"({format.spread(timed.seconds)}, n = {len(timed.seconds)}){why}"
    )
    figures.caption("Median of the repeats.", timed)


def in_place(device: str, environment: Environment) -> None:
    """Show that `.to` copies a tensor, but moves a module in place."""
    outline = simulated.outline("in_place", device=device)
    with outline, explained("The lab did not respond"):
        for name in ("copy_of_a_tensor", "module_in_place"):
            demonstration(name, device)
        link_to("to_not_reassigned")
        with st.expander("What if you built the optimizer before the move?"):
            optimizer(device, environment)


def demonstration(name: str, device: str) -> None:
    values = ask_once("core.lessons.model.model_to:tried", device)[name]
    st.markdown(words.table("demonstrations")[name])
    code, answers = st.columns([3, 2])
    with code:
        show(f"core.lessons.model.model_to:{name}")
    with answers:
        st.table(
            {
                "Expression": [f"`{expression}`" for expression in values],
                "Value": list(values.values()),
            },
            hide_index=True,
            alt=f"The values of the expressions in {name}",
        )


def optimizer(device: str, environment: Environment) -> None:
    st.markdown(words("optimizer.text"))
    if device == "cpu":
        st.markdown(words("optimizer.stand_in"))
    findings: Sequence[OptimizerFinding] = ask_once(FINDINGS, device)
    when = words.table("optimizer")
    st.table(
        {
            "AdamW": [when[finding.when] for finding in findings],
            f"A step after `model.to({findings[0].target})`": list(
                map(outcome, findings)
            ),
        },
        hide_index=True,
        alt="What a step does after the model has been moved",
    )
    for error in {finding.error for finding in findings if device == SIMULATED}:
        simulated.cuda_wording(error)
    st.caption(f"We just tried this with torch {environment.torch}.")
    st.markdown(words("optimizer.remedy"))


def outcome(finding: OptimizerFinding) -> str:
    if finding.error:
        return f"**It fails.** {finding.error}"
    if not finding.holds_the_parameters:
        return "**The model isn't learning**: AdamW still has the old tensors"
    return "It works" if finding.weights_changed else "The step changes nothing"


@st.fragment
def forget(device: str) -> None:
    st.header("Forget a move")
    with st.container(horizontal=True):
        moved = tuple(
            move
            for move in MOVES
            if not st.toggle(f"Forget the {move}", key=f"forget_{move}")
        )
    outline = simulated.outline("forget", device=device)
    with outline, explained("The step did not run"):
        end: Forgotten = ask_once(ATTEMPT, device, moved)
        # First, so that a phone has it under the switches.
        answer, code = st.columns([3, 5])
        with answer:
            if end.error:
                st.error(
                    f"`{end.error}`",
                    title="The step fails at the line with the arrow",
                    icon=":material/error:",
                )
                if device == SIMULATED:
                    simulated.cuda_wording(end.error)
                st.markdown(words("forget.look"))
            elif device == "cpu":
                st.success("The step still works: on the CPU, a move changes nothing.")
            elif not moved:
                st.success(words("forget.all"))
            else:
                st.success(f"The step works: everything is on `{device}`.")
        with code:
            step = source("core.lessons.model.model_to:step")
            st.code(marked(step, (end.line,)), wrap_lines=True)
            playground.button("core.lessons.model.model_to:step")


def code() -> None:
    code_tabs(
        (
            "The move",
            "This function from `core/lessons/model/model_to.py` made "
            "the table of tensors.",
            "core.lessons.model.model_to:move",
        ),
        (
            "The move and the five steps",
            words("code.walk"),
            "core.lessons.model.batch_steps:walk",
        ),
    )
