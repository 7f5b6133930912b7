"""The code of a training run, with what its settings are about."""

from core.config import IMAGE_TASKS
from core.ui import format
from core.ui.source import code_tabs, lines_with

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
