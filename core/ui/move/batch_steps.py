"""One batch of the training loop, one step at a time."""

import math
from typing import Any

import numpy as np
import streamlit as st

from core.move.results import SteppedBatch
from core.ui import figures, format, montage
from core.ui.charts import move as charts
from core.ui.charts.base import palette
from core.ui.move import memories
from core.ui.server import ask, explained
from core.ui.source import body

MOST_BATCHES = 100  # as core.move.batch_steps has them
Place = tuple[int, int]  # number of the batch, from 1, and of the step, from 0


@st.cache_data(max_entries=256, show_spinner=False)
def batch(task: str, model: str, device: str, number: int) -> SteppedBatch:
    """A batch as core.move.batch_steps makes it: the same for everybody."""
    return ask("core.move.batch_steps:inspect_batch", task, model, device, 0, number)


@st.fragment
def stepper(task: str, model: str, device: str) -> None:
    """Where the learner is in the batch, what happened there, and the way on."""
    state = st.session_state
    number = state.setdefault("batch_number", 1)
    place = state.setdefault("batch_place", 0)
    with explained("The step could not be made"):
        _step(batch(task, model, device, number), number, place)


def _step(seen: SteppedBatch, number: int, place: int) -> None:
    names = list(STEPS)
    view, code, meaning = STEPS[names[place]]
    before, on, label = (number, place - 1), (number, place + 1), "Next step"
    if last := place == len(names) - 1:
        on, label = (number + 1, 0), "Next batch"
    over = last and number == MOST_BATCHES
    with st.container(horizontal=True, vertical_alignment="center"):
        _button("Back", "arrow_back", "step_back", before, disabled=place == 0)
        _button(label, "skip_next", "step_on", on, type="primary", disabled=over)
        if number > 1:
            _button("Start again", "restart_alt", "step_reset", (1, 0))
    st.markdown(f"**Batch {number}** · {_trail(place)}")
    with st.container(border=True):
        left, right = st.columns([6, 5])
        with left:
            st.code(loop(code))
            st.markdown(meaning)
        with right:
            _memories(seen, place)
        view(seen, place)
    figures.caption("Seed 0, 64 images a batch, AdamW with its defaults.", seen)


def _trail(place: int) -> str:
    """The move, then the five steps, numbered; where the learner is in bold."""
    names = [f"{i} {name}" if i else name for i, name in enumerate(STEPS)]
    return " → ".join(f"**{n}**" if i == place else n for i, n in enumerate(names))


def loop(part: str) -> str:
    """The loop's body, with a mark on the lines that contain `part`."""
    lines = body("core.move.batch_steps:walk").splitlines()
    return "\n".join(
        f"{'→' if part in line else ' '} {line}"
        for line in lines
        if line and not line.startswith("yield")
    )


def _memories(seen: SteppedBatch, place: int) -> None:
    """Both memories after this step; on a CPU as they would be with an accelerator."""
    stages, backend = seen.stages, seen.environment.backend
    one = backend == "CPU"
    now = stages[place].held
    before = stages[place - 1].held if place else ()
    device = "With an accelerator" if one else f"Device: {backend}"
    st.image(
        memories.picture(now, before, device, one, palette()),
        alt=memories.in_words(now, one),
        width="stretch",
    )
    if one:
        st.markdown(
            ":small[On the CPU everything already lives in one memory, so nothing "
            "moves, and all tensors below are on `cpu`. The picture shows where each "
            "would be with an accelerator; the sizes are real.]"
        )


def _button(label: str, icon: str, key: str, to: Place, **more: Any) -> None:
    """The way to a place in a batch."""
    st.button(label, icon=f":material/{icon}:", key=key, on_click=_go, args=to, **more)


def _go(number: int, place: int) -> None:
    st.session_state.batch_number = number
    st.session_state.batch_place = place


def _tensors(seen: SteppedBatch, place: int) -> None:
    """Every tensor of the batch so far, with where it is and what it holds."""
    figures.table(
        [
            {
                "Tensor": look.name,
                "Device": look.device,
                "Shape": format.shape(look.shape),
                "dtype": look.dtype,
                "Values": f"{look.least:.4g} to {look.most:.4g}, mean {look.mean:.4g}",
            }
            for stage in seen.stages[: place + 1]
            for look in stage.tensors
        ],
        alt="The tensors of the batch: device, shape, dtype and values",
    )


def _images(seen: SteppedBatch, place: int) -> None:
    with st.grid(min_column_width=70, gap="small"):
        for image, label in zip(seen.images, seen.labels, strict=True):
            with st.container(gap="xxsmall"):
                tile = montage.montage(image[np.newaxis], frozenset(), palette())
                alt = f"An image of the batch: {seen.classes[label]}"
                montage.show(montage.png(tile), alt, "content")
                st.markdown(f":small[{seen.classes[label]}]")
    _tensors(seen, place)


def _zeroed(seen: SteppedBatch, place: int) -> None:
    before, now = seen.stages[place - 1], seen.stages[place]
    if all(norm is None for norm in before.gradients.values()):
        st.markdown(
            "This is the first batch, so there are no gradients to clear: every "
            "`.grad` is `None`, before and after. Come back here in the next batch."
        )
        return
    figures.table(
        [
            (name, f"{norm:.4g}", str(now.gradients[name]))
            for name, norm in before.gradients.items()
            if norm is not None
        ],
        ["Parameter", "Norm of .grad before", ".grad now"],
        "The gradient of each parameter before and after zero_grad",
    )


def _logits(seen: SteppedBatch, place: int) -> None:
    st.altair_chart(
        charts.logits(seen.logits, seen.labels, seen.classes),
        alt="The logits of the first eight images; the true class is framed",
    )
    _tensors(seen, place)


def _loss(seen: SteppedBatch, place: int) -> None:
    loss = seen.stages[place].tensors[0].mean
    guessing = math.log(10)
    figures.metrics({"Loss": f"{loss:.4f}", "Guessing: ln 10": f"{guessing:.4f}"})
    figures.table(
        [
            (seen.classes[label], row[label], -math.log(max(row[label], 1e-38)))
            for row, label in zip(seen.probabilities, seen.labels, strict=True)
        ],
        ["True class", "Its probability p", "−ln p"],
        "The probability of the true class for the first eight images",
        column_config={
            "Its probability p": st.column_config.ProgressColumn(
                format="percent", min_value=0, max_value=1
            ),
            "−ln p": st.column_config.NumberColumn(format="%.3f"),
        },
    )


def _gradients(seen: SteppedBatch, place: int) -> None:
    norms = {n: norm or 0.0 for n, norm in seen.stages[place].gradients.items()}
    _bars(norms, "Norm of .grad", seen)


def _moved(seen: SteppedBatch, place: int) -> None:
    _bars(seen.stages[place].moved, "How far it moved", seen)


def _bars(values: dict[str, float], title: str, seen: SteppedBatch) -> None:
    st.altair_chart(
        charts.parameter_bars(values, title, seen.environment.backend),
        alt=f"{title}, for each parameter",
    )


# What is shown of each step, the line of code that makes it, what it means.
STEPS = {
    "Move the batch": (
        _images,
        ".to(device)",
        "The batch is made on the host. Both tensors, inputs and targets, go to the "
        "device that the model is on. The images are `uint8`, one byte a pixel; the "
        "model turns them into floats.",
    ),
    "zero_grad": (
        _zeroed,
        "optimizer.zero_grad()",
        "Gradients add up. Clear what the previous batch left behind, or this step "
        "follows both batches.",
    ),
    "Forward pass": (
        _logits,
        "outputs = model(inputs)",
        "Ten logits for each image: the larger the logit, the likelier the model "
        "thinks that class is. They aren't probabilities yet: softmax, inside the "
        "loss, turns them into probabilities.",
    ),
    "Loss": (
        _loss,
        "loss = criterion(outputs, targets)",
        "One number for the whole batch: the mean of −ln p, where p is the probability "
        "given to the true class.",
    ),
    "backward": (
        _gradients,
        "loss.backward()",
        "Each parameter gets a gradient, a tensor of its own shape on its own device. "
        "The weights have not moved yet.",
    ),
    "Optimizer step": (
        _moved,
        "optimizer.step()",
        "Now the weights move a little, against their gradients. On its first step, "
        "AdamW moves every weight that has a gradient by about the learning rate, no "
        "matter how small the gradient is. Later steps are usually smaller. It also "
        "counts its steps, one number per parameter, and by default keeps these counts "
        "on the host.",
    ),
}
NAMES = list(STEPS)
