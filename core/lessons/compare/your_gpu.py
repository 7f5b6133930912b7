"""What torch knows about the work that a browser's GPU does: answers, and its times.

The browser draws the same numbers from the same formula, so only images, weights and
answers travel there.
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

BATCHES = 20  # of training images, which are taken again and again
READING_SECONDS = 0.04  # length of a reading: browsers round their clocks
MASK = 0xFFFFFFFF  # 32 bits


def random(count: int, seed: int) -> Tensor:
    """float32 (count,) from -0.5 to 0.5: the numbers that your_gpu.js draws too."""
    bits = (torch.arange(count) + seed * 0x9E3779B9) & MASK
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        bits = ((bits ^ (bits >> shift)) * factor) & MASK
    return ((bits ^ (bits >> 16)).double() / 2**32 - 0.5).float()


@cache
def products() -> dict[str, dict[str, str]]:
    """Of each size: the first, a middle and the last row, and all rows' weighted sums.

    A weight is 1 or -1, so that a wrong tile anywhere changes a sum.
    """
    found = {}
    for size in SIZES:
        a, b, signs = matrix(size, 1), matrix(size, 2), random(size, 3).sign()
        product = a @ b
        rows = product[[0, size // 2 + 1, size - 1]]
        found[str(size)] = {"rows": packed(rows), "sums": packed(product @ signs)}
    return found


def matrix(size: int, seed: int) -> Tensor:
    """float32 (size, size)"""
    return random(size * size, seed).view(size, size)


def new_model() -> models.ANN:
    """An ANN with weights from the formula, spread as nn.Linear spreads them."""
    model = models.ANN()
    with torch.no_grad():
        for seed, parameter in enumerate(model.parameters(), start=10):
            if parameter.ndim == 2:  # a bias is spread as the weights before it
                inputs = parameter.shape[1]
            values = random(parameter.numel(), seed) * (2 / inputs**0.5)
            parameter.copy_(values.view_as(parameter))
    return model


def prepare(checkpoint: bytes | None, task: str) -> dict[str, Any]:
    """All that the browser is sent: images, weights, and torch's answers.

    Without a checkpoint the forward pass is that of the model trained here.
    """
    dataset = datasets.load(task)
    train = dataset.train.first(BATCHES * BATCH_SIZE)
    trained, losses = train_here(train)
    if checkpoint:
        trained = state_dict.load(checkpoint, "ann", torch.device("cpu"))
    weights = torch.cat([each.detach().flatten() for each in trained.parameters()])
    with torch.inference_mode():
        logits = trained(dataset.test.images)
    return {
        "products": products(),
        "images": packed(dataset.test.images),
        "weights": packed(weights),
        "logits": packed(logits),
        "training": packed(train.images),
        "labels": packed(train.labels.byte()),
        "losses": losses,
        "rate": LEARNING_RATE,
    }


def packed(tensor: Tensor) -> str:
    """The bytes of a tensor, compressed: a browser unpacks "deflate" by itself."""
    raw = tensor.contiguous().numpy().tobytes()
    return base64.b64encode(zlib.compress(raw)).decode()


def train_here(split: datasets.Split) -> tuple[nn.Module, list[float]]:
    """A new model after STEPS training steps, and the loss of each."""
    model = new_model()
    step = training_step(model)
    losses = []
    for number in range(STEPS):
        first = number % BATCHES * BATCH_SIZE
        batch = slice(first, first + BATCH_SIZE)
        losses.append(step(split.images[batch], split.labels[batch]).item())
    return model, losses


def training_step(model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The step that the browser's GPU makes too."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    criterion = nn.CrossEntropyLoss()

    def step(images: Tensor, labels: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


@cache
def work(kind: str, size: int) -> Callable[[], object]:
    """The same work as the browser's GPU does, ready to be timed."""
    if kind == "product":
        a, b = matrix(size, 1), matrix(size, 2)
        return lambda: a @ b
    model, images = new_model(), torch.rand(size, 1, 28, 28)
    if kind == "forward":
        return torch.inference_mode()(lambda: model(images))
    step, labels = training_step(model), torch.randint(10, (size,))
    return lambda: step(images, labels)


def measure(
    works: Sequence[tuple[str, int]],
) -> tuple[list[float], Environment]:
    """One round on this machine's CPU: seconds of each piece of work, (kind, size)."""
    cpu = torch.device("cpu")
    seconds = []
    with devices.cpu_threads(spare(devices.usable_cores())):
        for kind, size in works:
            call = work(kind, size)
            (once,) = timing.measure(call, cpu, repeats=1).seconds
            count = max(1, round(READING_SECONDS / once))

            def many(call: Callable[[], object] = call, count: int = count) -> None:
                for _ in range(count):
                    call()

            (reading,) = timing.measure(many, cpu, repeats=1, warmup=0).seconds
            seconds.append(reading / count)
        return seconds, devices.environment(cpu)
