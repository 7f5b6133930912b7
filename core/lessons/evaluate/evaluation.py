"""Evaluate a model on the test set, and measure inference in each autograd mode."""

from functools import partial
from math import isqrt, sqrt
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor, nn

from core import devices, loops, models, state_dict
from core.config import IMAGE_MODELS, RunConfig
from core.data import datasets, feeds
from core.lessons.evaluate import picture
from core.lessons.evaluate.evaluate_result import ClassScore, Evaluation, ModeCost
from core.measure import peak_memory, timing
from core.measure.peak_memory import MODES
from core.watch import UNWATCHED, Watch
from to_device.errors import ExplainedError
from to_device.sim import memory

MODE_IMAGES = 2000


def evaluate(
    checkpoint: bytes, config: RunConfig, device_name: str = "auto"
) -> Evaluation:
    device = devices.resolve(device_name)
    dataset = datasets.load(config.task)
    model = state_dict.load_run(checkpoint, config, device)
    test = feeds.in_order(dataset.test, device)
    outputs, targets = loops.predict(model, test, device)
    _check_answers(outputs)
    confidences, predictions = outputs.softmax(dim=1).max(dim=1)
    confusion = confusion_matrix(predictions, targets, len(dataset.classes))
    figures, counts = per_class(confusion).tolist(), confusion.sum(dim=1).tolist()
    correct = int(confusion.diagonal().sum())
    return Evaluation(
        environment=devices.environment(device),
        classes=tuple(
            ClassScore(name, precision, recall, f1, count)
            for name, (precision, recall, f1), count in zip(
                dataset.classes, figures, counts, strict=True
            )
        ),
        confusion=tuple(map(tuple, confusion.tolist())),
        correct=correct,
        total=len(targets),
        interval=wilson_interval(correct, len(targets)),
        targets=tuple(targets.tolist()),
        predictions=tuple(predictions.tolist()),
        confidences=tuple(confidences.tolist()),
    )


def confusion_matrix(predictions: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Counts of images, int64 (classes, classes): [true class, predicted class]."""
    pairs = (targets * classes + predictions).cpu()
    return pairs.bincount(minlength=classes**2).view(classes, classes)


def per_class(confusion: Tensor) -> Tensor:
    """float32 (classes, 3): each class's precision, recall and F1.

    A figure whose formula would divide by 0 is 0.
    """
    right, predicted, true = confusion.diagonal(), confusion.sum(0), confusion.sum(1)
    figures = right / predicted, right / true, 2 * right / (predicted + true)
    return torch.stack(figures, dim=1).nan_to_num()


def wilson_interval(correct: int, total: int) -> tuple[float, float]:
    """The 95% confidence interval of the share `correct / total`.

    Unlike the textbook's p ± 1.96 √(p(1-p)/n), it stays within 0 and 1. Source: Wilson
    (1927), JASA 22, 209-212.
    """
    z = NormalDist().inv_cdf(0.975)
    share = correct / total
    middle = share + z * z / (2 * total)
    reach = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # Rounding must not move an end of the interval past the share.
    low, high = (middle - reach) / scale, (middle + reach) / scale
    return max(0.0, min(low, share)), min(1.0, max(high, share))


def images(task: str, indices: tuple[int, ...]) -> tuple[np.ndarray, tuple[int, ...]]:
    """Test images by their numbers, uint8 (n, 28, 28), and their true classes."""
    test, rows = datasets.load(task).test, list(indices)
    return test.images[rows, 0].numpy(), tuple(test.labels[rows].tolist())


def probabilities(
    checkpoint: bytes, config: RunConfig, pixels: np.ndarray
) -> tuple[float, ...]:
    """The probability of each class for one picture, uint8 (28, 28)."""
    device = devices.resolve("auto")
    model = state_dict.load_run(checkpoint, config, device).eval()
    image = torch.tensor(pixels, device=device).view(1, 1, 28, 28)
    with torch.inference_mode():
        outputs = model(image)
    _check_answers(outputs)
    return tuple(outputs.softmax(dim=1)[0].tolist())


def drawing(
    checkpoint: bytes, config: RunConfig, ink: bytes
) -> tuple[bytes, tuple[float, ...]]:
    """A drawing as the bytes of uint8 (28, 28), and each class's probability.

    `ink`: the bytes of a square uint8 array, 255 where the stroke is darkest.
    """
    side = isqrt(len(ink))
    gray = 1 - np.frombuffer(ink, np.uint8).reshape(side, side) / np.float32(255)
    pixels = picture.in_gray(gray).pixels
    return pixels.tobytes(), probabilities(checkpoint, config, pixels)


def _check_answers(outputs: Tensor) -> None:
    """Raise ExplainedError if any output, (n, classes), is NaN or infinite."""
    if count := int((~torch.isfinite(outputs)).any(dim=1).sum()):
        raise ExplainedError(
            f"For {count:,} of {len(outputs):,} images, the model's output is NaN or "
            "infinite, so the model can't be evaluated. Some weights are far too "
            "large. Train the model again with a smaller learning rate."
        )


def forward_memory(device_name: str) -> dict[str, int]:
    """For each mode, the bytes that a forward pass of the CNN keeps on the device."""
    device, sizes = devices.resolve(device_name), {}
    inputs = torch.rand(64, 1, 28, 28).to(device)
    model = models.build("cnn").to(device).eval()
    for mode, context in MODES.items():
        before = memory.allocated
        with context():
            outputs = model(inputs)
        sizes[mode] = memory.allocated - before
        del outputs
    return sizes


def compare_modes(
    checkpoint: bytes, config: RunConfig, watch: Watch = UNWATCHED
) -> tuple[ModeCost, ...]:
    """Seconds and peak memory of the same forward passes in each mode.

    Measures an ANN and a CNN: one from `checkpoint`, and the other untrained,
    since the cost doesn't depend on the weights.
    """
    device = devices.resolve("auto")
    test = datasets.load(config.task).test.first(MODE_IMAGES)
    feed = feeds.in_order(test, device, "device")
    nets = {config.model: state_dict.load(checkpoint, config.model, device)}
    for name in IMAGE_MODELS:
        nets.setdefault(name, models.build(name).to(device))

    def forward(model: nn.Module, mode: str) -> None:
        with MODES[mode]():
            for inputs, _ in feed:
                model(inputs)

    costs: list[ModeCost] = []
    for name, model in nets.items():
        model.eval()
        passes = (partial(forward, model, mode) for mode in MODES)
        works = list(map(watch.unless_cancelled, passes))
        timings = timing.measure_side_by_side(works, device)
        costs += [
            ModeCost(
                mode,
                seconds,
                peak_memory.peak_bytes(work, device),
                len(test),
                devices.environment(device),
                name,
            )
            for mode, seconds, work in zip(MODES, timings, works, strict=True)
        ]
    return tuple(costs)
