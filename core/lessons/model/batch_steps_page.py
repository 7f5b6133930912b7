"""One batch of the training loop, step by step, with the memories of CPU and device."""

import math
import re
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from core.lessons.model import transfers_page
from core.lessons.model.model_result import (
    MOST_BATCHES,
    Group,
    SteppedBatch,
    TensorSummary,
)
from core.measure.environment import Environment
from core.ui import charts, controls, figures, format, image_wall, playground, simulated
from core.ui.charts import Chart, Palette
from core.ui.server import ask_once, explained
from core.ui.source import body, marked
from to_device.words import Words

words = Words(__file__)

BATCH = "core.lessons.model.batch_steps:inspect_batch"

# The diagram of CPU and device memory: its rows from top to bottom, then measures in
# pixels.
ROWS = (
    *("model", "inputs", "targets", "outputs", "loss"),
    *("gradients", "optimizer state", "step counts", "activations"),
)
WIDTH, BOX, TOP, ROW = 460, 196, 40, 32
HEIGHT = TOP + ROW * len(ROWS) + 8
DEVICE_X = WIDTH - BOX


@st.fragment
def draw(task: str, model: str, device: str) -> None:
    state = st.session_state
    if "batch_place" not in state:  # a new or a reloaded page
        state.batch_number, state.batch_place = _asked()
    number: int = state.batch_number  # from 1
    place: int = state.batch_place  # the step, from 0
    outline = simulated.outline("batch", device=device)
    with outline, explained("The step could not be run"):
        names = {"task": format.NAMES[task], "model": format.NAMES[model]}
        st.markdown(words("batch.intro", device=device, **names))
        batch: SteppedBatch = ask_once(BATCH, task, model, device, 0, number)
        steps = [f"{i}\xa0{step}" if i else step for i, step in enumerate(STEPS)]
        _buttons(number, place)
        steps[place] = f"**{steps[place]}**"
        step = list(STEPS)[place]
        draw_step, code = STEPS[step]
        with st.container(border=True, key="batch_step"):
            st.markdown(f"**Batch {number}** · {' → '.join(steps)}")
            left, right = st.columns([6, 5])
            with left:
                st.markdown(words.table("steps")[step])
                st.code(loop(code), wrap_lines=True)
                playground.button("core.lessons.model.batch_steps:walk", "stepper")
            with right:
                _memories(batch, place)
            draw_step(batch, place)
        figures.caption("Seed 0, batches of 64, AdamW's default settings.", batch)


def _asked() -> tuple[int, int]:
    """The batch and the step in the address, as 2.4; else the first ones."""
    asked = re.fullmatch(r"([1-9]\d{0,2})\.(\d)", st.query_params.get("step", ""), re.A)
    number, place = map(int, asked.groups()) if asked else (1, 0)
    if number > MOST_BATCHES or place >= len(STEPS):
        return 1, 0
    return number, place


def _go(number: int, place: int) -> None:
    st.session_state.update(batch_number=number, batch_place=place)
    st.query_params["step"] = f"{number}.{place}"  # found again after a reload


def _buttons(number: int, place: int) -> None:
    def button(label: str, icon: str, key: str, *to: int, **more: Any) -> None:
        more |= {"icon": f":material/{icon}:", "on_click": _go, "args": to}
        st.button(label, key=key, **more)

    # On a phone, page.css keeps these buttons on the screen, and page.js scrolls to the
    # step's beginning after a click.
    with st.container(horizontal=True, key="step_buttons"):
        first, last = place == 0, place == len(STEPS) - 1
        if first and number > 1:
            button("Start again", "restart_alt", "step_reset", 1, 0)
        else:
            button("Back", "arrow_back", "step_back", number, place - 1, disabled=first)
        label, *to = "Next step", number, place + 1
        if last:
            label, *to = "Next batch", number + 1, 0
        over = last and number == MOST_BATCHES
        button(label, "skip_next", "step_on", *to, type="primary", disabled=over)


def loop(part: str) -> str:
    """The body of `walk` without its yields; arrows mark lines with `part`."""
    lines = body("core.lessons.model.batch_steps:walk").splitlines()
    lines = [line for line in lines if line and not line.startswith("yield")]
    numbers = [number for number, line in enumerate(lines, 1) if part in line]
    return marked("\n".join(lines), numbers)


# What each step shows


def _values(tensor: TensorSummary) -> str:
    ends = f"{tensor.least:.4g} to {tensor.most:.4g}"
    if tensor.name == "targets":  # the mean of class numbers would mean nothing
        return ends
    return f"{ends}, mean {tensor.mean:.4g}"


def _tensors(batch: SteppedBatch, place: int) -> None:
    figures.table(
        [
            (
                *(tensor.name, tensor.device, format.shape(tensor.shape), tensor.dtype),
                _values(tensor),
            )
            for stage in batch.stages[: place + 1]
            for tensor in stage.tensors
        ],
        ["Tensor", "Device", "Shape", "dtype", "Values"],
        "The batch's tensors, with their device, shape, dtype, and values",
    )


def _images(batch: SteppedBatch, place: int) -> None:
    with st.grid(min_column_width=70, gap="small"):
        for image, label in zip(batch.images, batch.labels, strict=True):
            name = batch.classes[label]
            with st.container(gap="xxsmall"):
                alt_text = f"An image from the batch: {name}"
                image_wall.show(image[np.newaxis], alt_text, "content")
                st.markdown(f":small[{name}]")
    _tensors(batch, place)


def _zeroed(batch: SteppedBatch, place: int) -> None:
    before = batch.stages[place - 1].gradients
    now = batch.stages[place].gradients
    if all(norm is None for norm in before.values()):
        st.markdown(words("batch.first"))
        return
    figures.table(
        [
            (name, f"{norm:.4g}", str(now[name]))
            for name, norm in before.items()
            if norm is not None
        ],
        ["Parameter", "Norm of .grad before", ".grad now"],
        "Each parameter's .grad: its norm before zero_grad, and its value now",
    )


def _logits(batch: SteppedBatch, place: int) -> None:
    st.altair_chart(
        logits(batch.logits, batch.labels, batch.classes),
        alt="The logits of the first eight images; the true class is outlined",
    )
    _tensors(batch, place)


def logits(
    values: np.ndarray, labels: tuple[int, ...], classes: tuple[str, ...]
) -> Chart:
    """A heat map of logits (n, classes), a row per image. True classes are framed."""
    images = [f"{row} · {classes[label]}" for row, label in enumerate(labels, 1)]
    table = pd.DataFrame(values, images, classes).rename_axis("image").reset_index()
    frame = table.melt("image", var_name="class", value_name="logit")
    true = dict(zip(images, [classes[label] for label in labels], strict=True))
    frame["true"] = frame["class"] == frame["image"].map(true)
    colors = charts.palette()
    most = float(np.abs(values).max()) or 1.0
    # Cells in strong colors get the inverse text color. On a light page, dark text is
    # legible on all colors but the strongest violet.
    strong = frame["logit"].abs() > most * (0.6 if colors == charts.DARK else 0.9)
    frame["dark"] = strong & ((frame["logit"] < 0) | (colors == charts.DARK))
    # Not the colors of right and wrong, since a logit is neither.
    ends = colors.further[1], colors.page, colors.further[2]
    chart = alt.Chart(frame).encode(
        x=alt.X("class:N")
        .sort(list(classes))
        .title(None)
        .axis(labelAngle=-40, labelOverlap=False),
        y=alt.Y("image:N").sort(None).title(None),
        tooltip=["image", "class", alt.Tooltip("logit").format(".3f")],
    )
    return charts.heat_map(
        chart,
        charts.shades("logit", *ends, domain=[-most, 0, most]),
        alt.Text("logit:Q").format(".1f" if controls.on_phone() else ".2f"),
        colors,
        "datum.dark",
        stroke=charts.either("datum.true", colors.text, "transparent"),
        strokeWidth=alt.value(2),
    ).properties(height=alt.Step(28))


def _loss(batch: SteppedBatch, place: int) -> None:
    loss = batch.stages[place].tensors[0].mean
    guessing = math.log(10)
    figures.metrics({"Loss": f"{loss:.4f}", "Guessing: ln 10": f"{guessing:.4f}"})
    figures.table(
        [
            (batch.classes[label], row[label], -math.log(max(row[label], 1e-38)))
            for row, label in zip(batch.probabilities, batch.labels, strict=True)
        ],
        ["True class", "Its probability p", "−ln p"],
        "The probability of the true class for the first eight images",
        formats={"−ln p": "%.3f"},
        column_config={
            "Its probability p": st.column_config.ProgressColumn(
                format="percent", min_value=0, max_value=1
            )
        },
    )


def _gradients(batch: SteppedBatch, place: int) -> None:
    norms = batch.stages[place].gradients.items()
    _bars({name: norm or 0.0 for name, norm in norms}, "Norm of .grad", batch)


def _moved(batch: SteppedBatch, place: int) -> None:
    _bars(batch.stages[place].moved, "Norm of the change", batch)


def _bars(values: dict[str, float], title: str, batch: SteppedBatch) -> None:
    st.altair_chart(
        parameter_bars(values, title, batch.environment.backend),
        alt=f"{title}, for each parameter",
    )


def parameter_bars(values: dict[str, float], title: str, backend: str) -> Chart:
    frame = pd.DataFrame({"name": list(values), "value": list(values.values())})
    return charts.bars(
        charts.rows(frame, "name", limit=160),
        alt.X("value:Q").title(title),
        alt.Text("value:Q").format(".3g"),
        24,
        height=14,
        color=alt.value(charts.palette().of(backend)),
    )


# For each step: the function that draws its result, and text that finds its code.
STEPS = {
    "Move the batch": (_images, ".to(device)"),
    "zero_grad": (_zeroed, "optimizer.zero_grad()"),
    "Forward pass": (_logits, "outputs = model(inputs)"),
    "Loss": (_loss, "loss = criterion(outputs, targets)"),
    "backward": (_gradients, "loss.backward()"),
    "Optimizer step": (_moved, "optimizer.step()"),
}


# The diagram of CPU and device memory


def _memories(batch: SteppedBatch, place: int) -> None:
    """Draw what is in the memories of the host and of the device after a step.

    Without an accelerator, draw what would be in them if there were one.
    """
    one_memory = batch.environment.backend == "CPU"
    now = batch.stages[place].groups
    before = batch.stages[place - 1].groups if place else ()
    svg = picture(now, before, batch.environment, charts.palette())
    figures.drawing(svg, in_words(now, one_memory), "memories")
    if one_memory:
        st.markdown(words("batch.one_memory"))
    if crossed := batch.stages[place].crossed:
        st.markdown(transfers_page.in_words(crossed))
    if any(group.name == "activations" for group in now):
        st.markdown(words("batch.activations"))


def on_host(group: Group, one_memory: bool) -> bool:
    """Whether to draw the tensors in the host's memory.

    With `one_memory`, there is no accelerator. The diagram then shows what would be in
    an accelerator's memory: all but the step counts, which would stay on the host.
    """
    return group.name == "step counts" if one_memory else group.device == "cpu"


def in_words(now: tuple[Group, ...], one_memory: bool) -> str:
    """The diagram's text for screen readers."""
    memories: dict[bool, list[str]] = {True: [], False: []}
    for group in now:
        text = f"{group.name} ({format.size(group.bytes)})"
        memories[on_host(group, one_memory)].append(text)
    host, device = (", ".join(texts) or "nothing" for texts in memories.values())
    return f"In the host's memory: {host}. In the device's memory: {device}."


def picture(
    now: tuple[Group, ...],
    before: tuple[Group, ...],
    environment: Environment,
    colors: Palette,
) -> str:
    """SVG: the host on the left, the device on the right, with new tensors framed bold.

    A device that isn't real has a dashed outline. If `before` is empty, the picture
    shows the batch moving from the host to the device.
    """
    backend = environment.backend
    one_memory = backend == "CPU"
    device = "With an accelerator" if one_memory else f"Device: {backend}"
    dashes = ' stroke-dasharray="6 4"' * (one_memory or environment.is_simulated)
    parts = [
        _memory(0, "Host: CPU", colors.cpu, colors),
        _memory(DEVICE_X, device, colors.accelerator, colors, dashes),
    ]
    names = {group.name for group in now}
    names_before = {group.name for group in before}
    parts += [
        _place(group, on_host(group, one_memory), colors)
        for group in before
        if group.name not in names
    ]
    for group in now:
        host, new = on_host(group, one_memory), group.name not in names_before
        if not before:  # the first step moves the batch, and makes nothing else
            new = group.name in ("inputs", "targets")
        moves = new and not before and not host
        if moves:
            parts += [_place(group, True, colors), _arrow(group, colors)]
        parts.append(_bar(group, host, new, moves, colors))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-size="14">'
        f"{''.join(parts)}</svg>"
    )


def _memory(x: int, name: str, hue: str, colors: Palette, dashes: str = "") -> str:
    return (
        f'<rect x="{x + 1}" y="1" width="{BOX - 2}" height="{HEIGHT - 2}" rx="8" '
        f'fill="{colors.ground}" stroke="{hue}" stroke-width="2"{dashes}/>'
        f'<text x="{x + 12}" y="26" font-weight="bold" fill="{colors.text}">{name}'
        "</text>"
    )


def _bar(group: Group, host: bool, new: bool, moves: bool, colors: Palette) -> str:
    """A box with name and size, which fades in if new, or moves in from the host."""
    edge, hue, animation = "1", colors.quiet, ""
    if new:
        edge, hue = "2.5", colors.cpu if host else colors.accelerator
        change = 'animate attributeName="opacity" from="0" to="1"'
        if moves:
            change = 'animateTransform attributeName="transform" type="translate" '
            change += f'from="{-DEVICE_X} 0" to="0 0"'
        animation = f'<{change} dur="0.9s"/>'
    look = f'fill="{colors.page}" stroke="{hue}" stroke-width="{edge}"'
    right = (0 if host else DEVICE_X) + BOX - 16
    return (
        f"<g>{animation}{_box(group, host, look, colors.text)}"
        f'<text x="{right}" y="{_y(group) + 18}" text-anchor="end" '
        f'fill="{colors.text}">{format.size(group.bytes)}</text></g>'
    )


def _place(group: Group, host: bool, colors: Palette) -> str:
    """A dashed outline where tensors were before the step."""
    look = f'fill="none" stroke="{colors.quiet}" stroke-dasharray="3 3"'
    return _box(group, host, look, colors.quiet)


def _box(group: Group, host: bool, look: str, ink: str) -> str:
    x, y = 8 if host else DEVICE_X + 8, _y(group)
    return (
        f'<rect x="{x}" y="{y}" width="{BOX - 16}" height="{ROW - 6}" rx="4" {look}/>'
        f'<text x="{x + 8}" y="{y + 18}" fill="{ink}">{group.name}</text>'
    )


def _arrow(group: Group, colors: Palette) -> str:
    middle = _y(group) + (ROW - 6) / 2
    return (
        f'<text x="{WIDTH / 2}" y="{middle - 5}" text-anchor="middle" font-size="12" '
        f'fill="{colors.text}">{format.size(group.bytes)}</text>'
        f'<path d="M{BOX - 8} {middle}H{DEVICE_X + 6}m-7 -5l7 5l-7 5" fill="none" '
        f'stroke="{colors.text}" stroke-width="1.5"/>'
    )


def _y(group: Group) -> int:
    return TOP + ROW * ROWS.index(group.name)
