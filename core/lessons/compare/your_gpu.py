"""The work that a browser's GPU does, done by torch for its answers and times.

The browser draws the same matrices from the same formula, so only images, weights and
answers are sent to it.
"""

import base64
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from core import devices, models, state_dict
from core.data import datasets
from core.lessons.compare.candidates import spare
from core.lessons.compare.your_gpu_result import BATCH_SIZE, LEARNING_RATE, SIZES, STEPS
from core.measure import timing
from core.measure.environment import Environment

BATCHES = 20  # the training images come from these, again and again
READING_SECONDS = 0.04  # as long as the browser's


def random(rows: int, columns: int, seed: int) -> Tensor:
    """float32 (rows, columns) from -0.5 to 0.5, as your_gpu.js draws them."""
    bits = (torch.arange(rows * columns) + seed * 0x9E3779B9) & 0xFFFFFFFF
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = ((bits ^ (bits >> shift)) * factor) & 0xFFFFFFFF
    numbers = (bits ^ (bits >> 16)).double() / 2**32 - 0.5
    return numbers.float().view(rows, columns)


@cache
def products() -> dict[str, dict[str, str]]:
    """Three rows of each size's product, and sums of all rows with random signs."""
    answers = {}
    for n in SIZES:
        product = random(n, n, seed=1) @ random(n, n, seed=2)
        rows = product[[0, n // 2 + 1, n - 1]]
        sums = product @ random(n, 1, seed=3).sign()
        answers[str(n)] = {"rows": packed(rows), "sums": packed(sums)}
    return answers


def packed(tensor: Tensor) -> str:
    """The tensor's bytes, compressed in zlib's format, which browsers can unpack."""
    return base64.b64encode(zlib.compress(tensor.numpy().tobytes())).decode()


def new_model() -> nn.Module:
    """An ANN with weights from the formula, in the range of nn.Linear's."""
    model = models.ANN()
    with torch.no_grad():
        for seed, parameter in enumerate(model.parameters(), start=10):
            if parameter.ndim == 2:  # a bias is like the weights before it
                inputs = parameter.shape[1]
            values = random(1, parameter.numel(), seed) * (2 / inputs**0.5)
            parameter.copy_(values.view_as(parameter))
    return model


def training_step(model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The step that the browser's GPU makes too; it returns the loss."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    criterion = nn.CrossEntropyLoss()

    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def prepare(checkpoint: bytes | None, task: str) -> dict[str, Any]:
    """The data for the browser; without a checkpoint, the model is a new one."""
    dataset = datasets.load(task)
    training = dataset.train.first(BATCHES * BATCH_SIZE)
    model = new_model()
    step, losses = training_step(model), []
    batches = [each.split(BATCH_SIZE) for each in (training.images, training.labels)]
    for number in range(STEPS):
        images, labels = (each[number % BATCHES] for each in batches)
        losses.append(step(images, labels).item())
    if checkpoint:
        model = state_dict.load(checkpoint, "ann", torch.device("cpu"))
    with torch.inference_mode():
        logits = model(dataset.test.images)
        weights = torch.cat([each.flatten() for each in model.parameters()])
    return {
        "products": products(),
        "images": packed(dataset.test.images),
        "weights": packed(weights),
        "logits": packed(logits),
        "training": packed(training.images),
        "labels": packed(training.labels.byte()),
        "losses": losses,
        "rate": LEARNING_RATE,
    }


@cache
def work(kind: str, size: int) -> Callable[[], object]:
    """The same work that the browser's GPU does, ready to be timed."""
    if kind == "product":
        a, b = random(size, size, seed=1), random(size, size, seed=2)
        return lambda: a @ b
    model, images = new_model(), torch.rand(size, 1, 28, 28)
    if kind == "forward":
        return torch.inference_mode()(lambda: model(images))
    step, labels = training_step(model), torch.randint(10, (size,))
    return lambda: step(images, labels)


def measure(works: Sequence[tuple[str, int]]) -> tuple[list[float], Environment]:
    """Seconds of each (kind, size) in one round on this machine's CPU."""
    cpu, seconds = torch.device("cpu"), []
    with devices.cpu_threads(spare(devices.usable_cores())):
        for kind, size in works:
            call = work(kind, size)
            (once,) = timing.measure(call, cpu, repeats=1).seconds
            count = max(1, round(READING_SECONDS / once))
            calls = timing.measure(call, cpu, repeats=count, warmup=0)
            seconds.append(sum(calls.seconds) / count)
        return seconds, devices.environment(cpu)
