"""Look closely at a trained model: every answer to the test set, and what asking costs.

The loop itself is `core.loops.predict`.
"""

from functools import partial

import numpy as np
import torch
from torch import nn

from core import devices, loops, models, state_dict
from core.config import IMAGE_MODELS, RunConfig
from core.data import batches, datasets
from core.errors import ExplainedError
from core.lessons.evaluate import metrics
from core.lessons.evaluate.evaluate_result import ClassScore, Evaluation, ModeCost
from core.measure import peak_memory, timing
from core.measure.peak_memory import MODES
from core.watch import UNWATCHED, Watch

MODE_IMAGES = 2000


def evaluate(
    checkpoint: bytes, config: RunConfig, device_name: str = "auto"
) -> Evaluation:
    """The answers of the model in `checkpoint`, which was trained as `config` says."""
    device = devices.resolve(device_name)
    dataset = datasets.load(config.task)
    model = state_dict.load(checkpoint, config.model, device)
    test = batches.in_order(dataset.test, device)
    outputs, targets = loops.predict(model, test, device)
    _check_answers(outputs)
    confidences, predictions = outputs.softmax(dim=1).max(dim=1)
    count = len(dataset.classes)
    figures = metrics.per_class(predictions, targets, count).tolist()
    confusion = metrics.confusion_matrix(predictions, targets, count).tolist()
    correct = int((predictions == targets).sum())
    return Evaluation(
        environment=devices.environment(device),
        classes=tuple(
            ClassScore(name, precision, recall, f1, sum(row))
            for name, (precision, recall, f1), row in zip(
                dataset.classes, figures, confusion, strict=True
            )
        ),
        confusion=tuple(tuple(row) for row in confusion),
        correct=correct,
        total=len(targets),
        interval=metrics.wilson_interval(correct, len(targets)),
        targets=tuple(targets.tolist()),
        predictions=tuple(predictions.tolist()),
        confidences=tuple(confidences.tolist()),
    )


def images(task: str, indices: tuple[int, ...]) -> np.ndarray:
    """Test images by their numbers, uint8 (n, 28, 28)."""
    return datasets.load(task).test.images[list(indices), 0].numpy()


def labels(task: str, indices: tuple[int, ...]) -> list[int]:
    """The true classes of test images, by their numbers."""
    return datasets.load(task).test.labels[list(indices)].tolist()


def probabilities(
    checkpoint: bytes, config: RunConfig, pixels: np.ndarray
) -> tuple[float, ...]:
    """What the model makes of one picture, uint8 (28, 28): a probability a class."""
    device = devices.resolve("auto")
    model = state_dict.load(checkpoint, config.model, device).eval()
    image = torch.tensor(pixels, device=device).view(1, 1, 28, 28)
    with torch.inference_mode():
        outputs = model(image)
    _check_answers(outputs)
    return tuple(outputs.softmax(dim=1)[0].tolist())


def _check_answers(outputs: torch.Tensor) -> None:
    """Raise ExplainedError where an answer, a row of (n, classes), is no numbers."""
    if odd := int((~torch.isfinite(outputs)).any(dim=1).sum()):
        raise ExplainedError(
            f"To {odd:,} of {len(outputs):,} images the model answers NaN or infinity, "
            "so there is nothing to judge it by. Some of its weights are far too "
            "large: train it again, with a smaller learning rate."
        )


def compare_modes(
    checkpoint: bytes, config: RunConfig, watch: Watch = UNWATCHED
) -> tuple[ModeCost, ...]:
    """Seconds and peak memory of the same forward passes in each mode.

    Through the model of `checkpoint`, and another one as it is built: what it
    costs to ask does not depend on the weights.
    """
    device = devices.resolve("auto")
    test = datasets.load(config.task).test.first(MODE_IMAGES)
    feed = batches.in_order(test, device, "device")
    built = {config.model: state_dict.load(checkpoint, config.model, device)}
    for other in IMAGE_MODELS:
        built.setdefault(other, models.build(other).to(device))

    def forward(model: nn.Module, mode: str) -> None:
        with MODES[mode]():
            for inputs, _ in feed:
                model(inputs)

    costs: list[ModeCost] = []
    for name, model in built.items():
        model.eval()
        passes = (partial(forward, model, mode) for mode in MODES)
        works = list(map(watch.checked, passes))
        timings = timing.measure_side_by_side(works, device)
        costs += [
            ModeCost(
                mode,
                measured.seconds,
                peak_memory.peak_bytes(work, device),
                len(test),
                devices.environment(device),
                name,
            )
            for mode, measured, work in zip(MODES, timings, works, strict=True)
        ]
    return tuple(costs)
