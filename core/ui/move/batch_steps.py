"""One batch of the training loop, one step at a time."""

import math

import streamlit as st

from core.move.results import BatchStage, SteppedBatch
from core.ui import figures, format
from core.ui.charts import move as charts
from core.ui.server import engine, explained
from core.ui.source import lines_with

MOST_BATCHES = 100  # as core.move.batch_steps has them
STEPS = {
    "Move the batch": (
        ".to(device)",
        "The batch is made on the host. Both its tensors go to the device that the "
        "model is on: the labels too.",
    ),
    "zero_grad": (
        "optimizer.zero_grad()",
        "Gradients add up. What the batch before has left must go, or this step would "
        "follow both.",
    ),
    "Forward pass": (
        "outputs = model(inputs)",
        "Ten logits for each image, larger for a class that the model finds likelier. "
        "They are not probabilities: softmax makes them so, inside of the loss.",
    ),
    "Loss": (
        "loss = criterion(outputs, targets)",
        "One number for the whole batch: the mean of −ln p, where p is the probability "
        "given to the true class.",
    ),
    "backward": (
        "loss.backward()",
        "Each parameter gets a gradient, a tensor of its own shape on its own device. "
        "The weights have not moved yet.",
    ),
    "Optimizer step": (
        "optimizer.step()",
        "Now the weights move, all a little, against their gradients. AdamW moves each "
        "number by about the learning rate, however small its gradient is.",
    ),
}
NAMES = list(STEPS)


@st.cache_data(max_entries=256, show_spinner=False)
def batch(task: str, model: str, device: str, number: int) -> SteppedBatch:
    """A batch as core.move.batch_steps makes it: the same for everybody."""
    return engine().ask(
        "core.move.batch_steps:inspect_batch", task, model, device, 0, number
    )


@st.fragment
def stepper(task: str, model: str, device: str) -> None:
    """Where the learner is in the batch, what happened there, and the way on."""
    state = st.session_state
    number = state.setdefault("batch_number", 1)
    place = state.setdefault("batch_place", 0)
    with explained("The step could not be made"):
        _step(batch(task, model, device, number), number, place)


def _step(seen: SteppedBatch, number: int, place: int) -> None:
    name = NAMES[place]
    with st.container(border=True):
        st.markdown(f"**Batch {number}** · " + _trail(place))
        with st.container(horizontal=True):
            st.button(
                "Back",
                icon=":material/arrow_back:",
                key="step_back",
                on_click=_go,
                args=(number, place - 1),
                disabled=place == 0,
            )
            last = place == len(NAMES) - 1
            st.button(
                "Next batch" if last else "Next step",
                icon=":material/skip_next:",
                type="primary",
                key="step_on",
                on_click=_go,
                args=(number + 1, 0) if last else (number, place + 1),
                disabled=last and number == MOST_BATCHES,
            )
            if number > 1:
                st.button(
                    "Start again",
                    icon=":material/restart_alt:",
                    key="step_reset",
                    on_click=_go,
                    args=(1, 0),
                )
        code, meaning = STEPS[name]
        st.code(lines_with("core.move.batch_steps:walk", code))
        st.markdown(meaning)
        VIEWS[name](seen, place)
    st.caption(
        f"Seed 0, 64 images a batch, AdamW with its defaults. "
        f"{format.provenance(seen.environment)}."
    )


def _go(number: int, place: int) -> None:
    st.session_state.batch_number = number
    st.session_state.batch_place = place


def _trail(place: int) -> str:
    """The names of all steps, the one we are at in bold."""
    return " → ".join(
        f"**{name}**" if index == place else name for index, name in enumerate(NAMES)
    )


def _tensors(seen: SteppedBatch, place: int) -> None:
    """Every tensor of the batch so far, with where it is and what it holds."""
    looks = [look for stage in seen.stages[: place + 1] for look in stage.tensors]
    figures.table(
        [
            (
                look.name,
                look.device,
                format.shape(look.shape),
                look.dtype,
                f"{look.least:.4g} to {look.most:.4g}, mean {look.mean:.4g}",
            )
            for look in looks
        ],
        ["Tensor", "Device", "Shape", "dtype", "Values"],
        "The tensors of the batch: device, shape, dtype and values",
    )


def _images(seen: SteppedBatch, place: int) -> None:
    with st.grid(min_column_width=84, gap="small"):
        for image, label in zip(seen.images, seen.labels, strict=True):
            with st.container(gap="xxsmall"):
                large = image.repeat(3, axis=0).repeat(3, axis=1)
                st.image(large, alt=f"An image of the batch: {seen.classes[label]}")
                st.markdown(f":small[{seen.classes[label]}]")
    _tensors(seen, place)


def _zeroed(seen: SteppedBatch, place: int) -> None:
    before, now = seen.stages[place - 1], seen.stages[place]
    if all(norm is None for norm in before.gradients.values()):
        st.markdown(
            "This is the first batch, so there were none: every `.grad` is `None`, "
            "before and after. Come here again in the next batch."
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
    figures.metrics(
        {"Loss": f"{loss:.4f}", "Guessing: ln 10": f"{math.log(10):.4f}"}, 160
    )
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
    stage = seen.stages[place]
    _bars({n: g or 0.0 for n, g in stage.gradients.items()}, "Norm of .grad", seen)


def _moved(seen: SteppedBatch, place: int) -> None:
    stage: BatchStage = seen.stages[place]
    _bars(stage.moved, "Distance from where it was", seen)


def _bars(values: dict[str, float], title: str, seen: SteppedBatch) -> None:
    st.altair_chart(
        charts.parameter_bars(values, title, seen.environment.backend),
        alt=f"{title} of each parameter",
    )


VIEWS = {
    "Move the batch": _images,
    "zero_grad": _zeroed,
    "Forward pass": _logits,
    "Loss": _loss,
    "backward": _gradients,
    "Optimizer step": _moved,
}
