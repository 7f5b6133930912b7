"""The code of a training run, with what its settings are about."""

import streamlit as st

from core.config import IMAGE_TASKS
from core.mistakes.catalogue import BY_SLUG
from core.ui import course, format
from core.ui.source import code_tabs, lines_with

FORGOTTEN = {  # what may be left behind, and the mistake that this is
    "The model": "model_not_moved",
    "The inputs": "data_not_moved",
    "The labels": "labels_not_moved",
    "The loss": "loss_not_moved",
}
LEARNED = (
    "A loss with a parameter of its own, from `core/criteria.py`. It learns how noisy "
    "the data is, along with the weights: a large error costs less where `sigma` is "
    "large, but a large `sigma` costs by itself."
)


def tabs(task: str, model: str, criterion: str) -> None:
    """The loop, the model, the criterion, and the moves of all three."""
    learned = criterion == "gaussian"
    none = f"`nn.{format.CLASSES[criterion]}`, which has no parameters."
    if task not in IMAGE_TASKS:
        none += " Choose the criterion Gaussian NLL for one that has."
    moves = code_tabs(
        (
            "The loop",
            "The five steps that never change: `zero_grad`, forward, loss, "
            "`backward`, `step`. From `core/loops.py`.",
            "core.loops:train_epoch",
        ),
        (
            "The model",
            "The layers, from `core/models.py`.",
            f"core.models:{format.CLASSES[model]}",
        ),
        ("The criterion", LEARNED, "core.criteria:GaussianLoss")
        if learned
        else ("The criterion", none),
        (
            "The moves",
            "The model is moved **once**, before the loop; the batch is moved **in "
            "every step**, inside it. Forget one, and PyTorch says that it "
            "expected all tensors to be on the same device; a convolution says that "
            "input type and weight type should be the same.",
            "The **third move** is the criterion's. This one has a parameter: "
            "forget the move, and the loss fails as the model would; forget the "
            "parameter in the optimizer, and it is never learned."
            if learned
            else "The criterion is moved too. This one has no parameters, so "
            "nothing happens; with a loss that has some, it is the third move.",
        ),
    )[-1]
    moves.code(
        "# once, in core/training.py\n"
        + lines_with("core.training:Training", ".to(device)")
        + "\n"
        + lines_with("core.training:Training", "learned")
        + "\n\n# in every step, in core/loops.py\n"
        + lines_with("core.loops:train_epoch", ".to(device)")
    )


def forget_a_move() -> None:
    """The way to what happens without each of the moves, made on purpose."""
    mistakes = course.page("Mistakes")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Forget a move on purpose:", width="content")
        for what, slug in FORGOTTEN.items():
            st.page_link(
                mistakes.file,
                label=what,
                icon=mistakes.icon,
                help=BY_SLUG[slug].title,
                query_params={"mistake": slug},
                width="content",
            )
