"""The code of a training run, with what its settings are about."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from core.config import IMAGE_TASKS
from core.mistakes.catalogue import BY_SLUG
from core.ui import figures, format
from core.ui.course import page
from core.ui.kept import KeptAnswer
from core.ui.links import link
from core.ui.server import apart, explained
from core.ui.source import Part, code_tabs, lines_with

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
ZERO_GRAD = (
    "Some scripts call `zero_grad` after the forward pass. Both work: only `backward` "
    "writes gradients, so clear the old ones any time after `step` has used them and "
    "before the next `backward`."
)
SHUFFLE = (
    "A slice takes neighbors, so shuffle before every epoch: "
    "`order = torch.randperm(len(inputs))`, then `inputs[order]` and `targets[order]`. "
    "Sorted by class instead, an epoch ends with batches of nothing but ankle boots."
)
LARGER = (
    "**How large may a batch be?** As large as memory allows. But the larger the "
    "batches, the fewer the steps in an epoch, and a model only learns by taking steps."
)
ELSEWHERE = (
    "Speed measures what else a step keeps in memory, and whether loader workers and "
    "pinned memory pay; **Out of memory** on the page Mistakes runs out on purpose."
)
CROSS_ENTROPY = (
    "`nn.CrossEntropyLoss`, which has no parameters. It wants logits (N, 10) and the "
    "labels as integers (N,). The class is the greatest logit: "
    "`outputs.argmax(dim=1)`, or in older code the second of the two that "
    "`torch.max(outputs, 1)` returns, which is the same."
)
ONE_KIND = (
    "**Just one class against all the others?** Then one logit per image is enough, "
    "and `nn.BCEWithLogitsLoss` wants float targets in the shape of the outputs. From "
    "`core/train/one_kind.py`, for shirts among the sprites:"
)
MOVES = (
    "The model is moved **once**, before the loop; the batch is moved **in every "
    "step**, inside it. Forget one, and PyTorch says “Expected all tensors to be on "
    "the same device”; a convolution says “Input type … and weight type … should be "
    "the same”."
)
THIRD_MOVE = (
    "The **third move** is the criterion's. This one has a parameter: forget the move, "
    "and the loss fails as the model would; forget the parameter in the optimizer, and "
    "it is never learned."
)
NO_THIRD_MOVE = (
    "The criterion is moved too. This one has no parameters, so nothing happens; a "
    "loss that does have some is the third thing to move."
)


# A class that tries it asks once in ten minutes.
orders: KeptAnswer[dict[str, float]] = KeptAnswer(
    partial(apart, "core.train.minibatches:compare_orders"), 600
)
sizes: KeptAnswer[list[Any]] = KeptAnswer(
    partial(apart, "core.train.minibatches:compare_sizes"), 600
)
one_kind: KeptAnswer[Any] = KeptAnswer(partial(apart, "core.train.one_kind:train"), 600)


def tabs(task: str, model: str, criterion: str) -> None:
    """The loop, the batches, the model, the criterion, and the moves of all three."""
    learned, images = criterion == "gaussian", task in IMAGE_TASKS
    code_tabs(
        (
            "The loop",
            "The five steps that never change: `zero_grad`, forward, loss, "
            "`backward`, `step`. From `core/loops.py`.",
            "core.loops:train_epoch",
            ZERO_GRAD,
        ),
        (
            "The batches",
            "A batch can be a slice of a tensor, without any `DataLoader`. From "
            "`core/train/minibatches.py`.",
            "core.train.minibatches:slices",
            SHUFFLE,
            _try_batches,
        ),
        (
            "The model",
            "The layers, from `core/models.py`.",
            f"core.models:{format.CLASSES[model]}",
        ),
        ("The criterion", *_criterion(criterion, images)),
        (
            "The moves",
            MOVES,
            THIRD_MOVE if learned else NO_THIRD_MOVE,
            _moves,
        ),
    )


def _criterion(criterion: str, images: bool) -> tuple[Part, ...]:
    if criterion == "gaussian":
        return LEARNED, "core.criteria:GaussianLoss"
    if not images:
        none = f"`nn.{format.CLASSES[criterion]}`, which has no parameters. Choose the "
        return (none + "criterion Gaussian NLL for one that has.",)
    example = ("core.train.one_kind:train", "core.train.one_kind:score")
    return CROSS_ENTROPY, ONE_KIND, *example, _try_one_kind


def _moves() -> None:
    st.code(
        "# once, in core/training.py\n"
        + lines_with("core.training:Training", ".to(device)")
        + "\n"
        + lines_with("core.training:Training", "learned")
        + "\n\n# in every step, in core/loops.py\n"
        + lines_with("core.loops:train_epoch", ".to(device)")
    )


def _try_batches() -> None:
    """What the order of the samples does, and how many there are in a batch."""
    _try("Train in both orders", "try_orders", _orders)
    st.markdown(LARGER)
    _try("Try three batch sizes", "try_sizes", _sizes)
    st.markdown(ELSEWHERE)
    with st.container(horizontal=True):
        link(page("Speed"))
        link(page("Mistakes"))


def _try_one_kind() -> None:
    _try("Train it on the shirts", "try_one_kind", _one_kind)


def _try(label: str, key: str, draw: Callable[[], None]) -> None:
    """A button, and in its place what it brought, until the page is left."""
    tried = f"{key}_was_pressed"
    if st.button(label, key=key, icon=":material/play_arrow:"):
        st.session_state[tried] = True
    if st.session_state.get(tried):
        with explained("The lab has no answer"), st.spinner("It is trained"):
            draw()


def _orders() -> None:
    found = orders()
    st.markdown(
        f"One epoch on the sprites, tried here: **{found['shuffled']:.1%}** of the "
        f"test images are right after shuffled batches, **{found['sorted']:.1%}** "
        "after batches sorted by class. Every sample was seen once in both."
    )


def _sizes() -> None:
    """What an epoch in batches of each size took and brought, the whole set last."""
    found = sizes()
    many, whole = found[0][0], found[-1][0]
    st.markdown(
        f"One epoch on the sprites, tried here: **{many.accuracy:.0%}** of the test "
        f"images are right after {many.steps:,} steps, **{whole.accuracy:.0%}** after "
        f"{format.counted(whole.steps, 'step')} with all {whole.batch_size:,} images "
        "at once. With larger batches, raise the learning rate or train for more "
        "epochs."
    )
    columns = ("Batch size", "Steps", "Images/s", "Peak memory", "Right")
    rows = (
        (
            f"{each.batch_size:,}",
            f"{each.steps:,}",
            f"{each.samples_per_second:,.0f}",
            format.size(kept) if kept else "not counted",
            f"{each.accuracy:.1%}",
        )
        for each, kept in found
    )
    right = st.column_config.TextColumn(alignment="right")
    figures.table(
        rows,
        columns,
        "What an epoch in batches of each size took and brought",
        column_config=dict.fromkeys(columns, right),
    )
    st.caption(
        "One core, Adam at its default rate, n = 1. Peak memory: the tensors that a "
        "training step has at once, beside the weights and the pixels."
    )


def _one_kind() -> None:
    found = one_kind()
    st.markdown(
        f"Tried here: **{found.accuracy:.1%}** of the answers are right. That sounds "
        f"good, but a model that always says no would reach {found.always_no:.0%}. It "
        f"found **{found.found:.0%}** of the shirts. Where most of the right answers "
        "are no, look at both numbers."
    )


def forget_a_move() -> None:
    """The way to what happens without each of the moves, made on purpose."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Forget a move on purpose:", width="content")
        for what, slug in FORGOTTEN.items():
            link(
                page("Mistakes"),
                what,
                help=BY_SLUG[slug].title,
                query_params={"mistake": slug},
                width="content",
            )
