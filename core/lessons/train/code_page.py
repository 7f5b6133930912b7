"""The Train page's tabs with a run's code, and experiments to try with it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from core.config import IMAGE_TASKS, RunConfig
from core.lessons.mistakes.catalogue import BY_SLUG
from core.lessons.mistakes.catalogue_page import link_to
from core.runs import export
from core.ui import figures, format
from core.ui.course import link, page
from core.ui.server import KeptAnswer, explained, in_child
from core.ui.source import Part, code_tabs, source
from to_device.words import Words

FORGOTTEN = {  # what was not moved to the device, and the mistake's name
    "The model": "model_not_moved",
    "The inputs": "data_not_moved",
    "The labels": "labels_not_moved",
    "The loss": "loss_not_moved",
}
words = Words(__file__)


def _answer(address: str) -> KeptAnswer[Any]:
    """A function's result, shared by all visitors, renewed after ten minutes."""
    return KeptAnswer(partial(in_child, f"core.lessons.train.{address}"), 600)


orders = _answer("minibatches:compare_orders")
sizes = _answer("minibatches:compare_sizes")
one_kind = _answer("one_kind:train")


def _textbook_script(task: str) -> str:
    config = RunConfig(task=task, feed="dataloader", epochs=1)
    return export.inlined(config, 1, shuffle=True)


def _print_textbook(task: str) -> str:
    address, script = "core.lessons.train.textbook:run", _textbook_script(task)
    return in_child(address, script, task == "sprites", seconds=120)


textbook_output = {
    task: KeptAnswer(partial(_print_textbook, task), 600) for task in IMAGE_TASKS
}


def tabs(task: str, model: str, criterion: str) -> None:
    """Draw the code's tabs, and below them those that the course doesn't need."""
    code_tabs(
        (
            "The moves",
            words("code.moves"),
            words("code.third_move")
            if criterion == "gaussian"
            else words("code.no_third_move"),
            _moves,
            forget_a_move,
        ),
        (
            "The loop",
            words("code.loop"),
            "core.loops:train_epoch",
            words("code.zero_grad"),
        ),
        (
            "The batches",
            words("code.batches"),
            "core.lessons.train.minibatches:slices",
            words("code.shuffle"),
            _try_batches,
        ),
        key="code_The loop",
    )
    with st.expander("More: the model, the criterion, and the whole script"):
        code_tabs(
            ("The model", words("code.model"), f"core.models:{format.CLASSES[model]}"),
            ("The criterion", *_criterion(criterion, task in IMAGE_TASKS)),
            ("The whole script", partial(_textbook, task)),
        )


def _criterion(criterion: str, images: bool) -> tuple[Part, ...]:
    if criterion == "gaussian":
        return words("code.gaussian"), "core.loss_functions:GaussianLoss"
    if not images:
        return (
            f"`nn.{format.CLASSES[criterion]}` has no parameters. To see "
            "a loss with a parameter, choose the criterion Gaussian NLL.",
        )
    return (
        words("code.cross_entropy"),
        words("code.one_kind"),
        "core.lessons.train.one_kind:train",
        "core.lessons.train.one_kind:score",
        partial(_try, "Train a model that finds shirts", "try_one_kind", _one_kind),
    )


def lines_with(address: str, part: str) -> str:
    lines = source(address).splitlines()
    return "\n".join(line.strip() for line in lines if part in line)


def _moves() -> None:
    lines = (
        "# once, in core/training.py",
        lines_with("core.training:Training", ".to(device)"),
        lines_with("core.training:Training", "learned"),
        "\n# in every step, in core/loops.py",
        lines_with("core.loops:train_epoch", ".to(device)"),
    )
    st.code("\n".join(lines), wrap_lines=True)


def _try_batches() -> None:
    both = "Train in both orders"
    _try(both, "try_orders", lambda: st.markdown(words("code.orders", **orders())))
    st.markdown(words("code.larger"))
    _try("Try three batch sizes", "try_sizes", _sizes)
    st.markdown(words("code.further"))
    with st.container(horizontal=True):
        link(page("Speed"))
        link(page("Mistakes"))


def _try(label: str, key: str, draw: Callable[[], object]) -> None:
    """Draw a button; once it has been pressed, call `draw` at each run of the page."""
    pressed = f"{key}_was_pressed"
    if st.button(label, key=key, icon=":material/play_arrow:"):
        st.session_state[pressed] = True
    if st.session_state.get(pressed):
        with explained("The lab did not respond"), st.spinner("Training"):
            draw()


def _sizes() -> None:
    epochs = sizes()
    many, whole = epochs[0][0], epochs[-1][0]
    few = format.counted(whole.steps, "step")
    st.markdown(words("code.sizes_found", many=many, whole=whole, few=few))
    columns = ("Batch size", "Steps", "Images/s", "Peak memory", "Accuracy")
    rows = (
        (
            f"{epoch.batch_size:,}",
            f"{epoch.steps:,}",
            f"{epoch.samples_per_second:,.0f}",
            format.size(peak_bytes) if peak_bytes else "not counted",
            f"{epoch.accuracy:.1%}",
        )
        for epoch, peak_bytes in epochs
    )
    figures.table(
        rows,
        columns,
        "Steps, speed, peak memory, and accuracy of an epoch for each batch size",
        right=columns,
    )
    st.caption(words("code.sizes"))


def _textbook(task: str) -> None:
    if task not in IMAGE_TASKS:
        task = "sprites"
    st.markdown(words("code.textbook"))
    st.code(_textbook_script(task), line_numbers=True)
    st.markdown(words("code.differs"))

    def run() -> None:
        st.markdown("On this machine, one epoch prints:")
        st.code(textbook_output[task](), language=None)

    _try("Run it here", f"try_textbook_{task}", run)


def _one_kind() -> None:
    st.markdown(words("code.one_kind_found", **vars(one_kind())))


def forget_a_move() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Leave out a move on purpose:", width="content")
        for name, slug in FORGOTTEN.items():
            link_to(slug, name, help=BY_SLUG[slug].title, width="content")
