"""Torch does the work of the browser's GPU, to check its answers and compare its times.

The browser draws the same matrices by the same formula. So the server sends only
images, parameters and answers.
"""

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from core import devices, models, state_dict
from core.data import datasets
from core.data.datasets import Dataset
from core.lessons.compare.candidates import spare
from core.lessons.compare.your_gpu_result import BATCH_SIZE, BATCH_SIZES, SIZES, STEPS
from core.loops import Batches, train_epoch
from core.measure import timing
from core.measure.environment import Environment

CPU = torch.device("cpu")
BATCHES, LEARNING_RATE = 20, 1e-3  # the training repeats these 20 batches
FACTORS = (0x9E3779B1, 0x85EBCA77)  # for `random`: one for each matrix of a product
READING_SECONDS = 0.04  # as long as a reading in your_gpu.js


def random(n: int, factor: int) -> Tensor:
    """The n × n matrix that your_gpu.js draws: float32, from -0.5 to 0.5."""
    i = torch.arange(n * n)
    bits = (i * i * factor) & 0xFFFFFFFF
    return (bits.double() / 2**32 - 0.5).float().view(n, n)


@cache
def products() -> list[dict[str, Any]]:
    """For each size, the answers that the browser's products must match.

    They are three rows of a @ b, and (a @ b) @ b[0], which covers all rows.
    """
    answers = []
    for n in SIZES:
        a, b = (random(n, factor) for factor in FACTORS)
        product = a @ b
        rows, sums = product[[0, n // 2 + 1, n - 1]], product @ b[0]
        answers.append({"n": n, "rows": packed(rows), "sums": packed(sums)})
    return answers


def packed(tensor: Tensor) -> str:
    """The tensor's bytes as text: zlib, then base64. Browsers can unpack this."""
    return base64.b64encode(zlib.compress(tensor.numpy().tobytes())).decode()


def parameters(model: nn.Module) -> str:
    """All parameters, packed: each layer's weights (inputs, outputs), then its bias."""
    with torch.no_grad():
        return packed(torch.cat([p.t().flatten() for p in model.parameters()]))


def training(model: nn.Module) -> Callable[[Batches], Iterator[Tensor]]:
    """A function that trains as the browser's GPU does, and yields each step's loss."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    return lambda batches: train_epoch(model, batches, criterion, optimizer, CPU)


def prepare(task: str) -> dict[str, Any]:
    """The data for the browser.

    The logits are those of a model that has been trained here for STEPS steps.
    """
    dataset = datasets.load(task)
    few = dataset.train.first(BATCHES * BATCH_SIZE)
    images, labels = few.images.split(BATCH_SIZE), few.labels.split(BATCH_SIZE)
    batches = list(zip(images, labels, strict=True)) * (STEPS // BATCHES)
    model: nn.Module = models.ANN()
    start = parameters(model)
    losses = [loss.item() for loss in training(model)(batches)]
    return classified(model, dataset) | {
        "factors": FACTORS,
        "products": products(),
        "batches": [size for size in BATCH_SIZES if size <= len(dataset.test)],
        "images": packed(dataset.test.images),
        "training": packed(few.images),
        "labels": packed(few.labels.byte()),
        "start": start,
        "losses": losses,
        "rate": LEARNING_RATE,
    }


def with_weights(checkpoint: bytes, task: str) -> dict[str, str]:
    """What of the data is different with the weights of this checkpoint."""
    return classified(state_dict.load(checkpoint, "ann", CPU), datasets.load(task))


def classified(model: nn.Module, dataset: Dataset) -> dict[str, str]:
    """The model, and its logits of all test images."""
    with torch.inference_mode():
        logits = model(dataset.test.images)
    return {"parameters": parameters(model), "logits": packed(logits)}


@cache
def work(kind: str, size: int) -> Callable[[], object]:
    """The same work that the browser's GPU does, ready to be timed."""
    if kind == "product":
        a, b = (random(size, factor) for factor in FACTORS)
        return lambda: a @ b
    model, images = models.ANN(), torch.rand(size, 1, 28, 28)
    if kind == "forward":
        return torch.inference_mode()(lambda: model(images))
    train, batch = training(model), (images, torch.randint(10, (size,)))
    return lambda: next(train([batch]))


def measure(works: Sequence[tuple[str, int]]) -> tuple[list[float], Environment]:
    """The mean seconds of a call on this machine's CPU, for each (kind, size)."""
    seconds = []
    with devices.cpu_threads(spare(devices.usable_cores())):
        for kind, size in works:
            call = work(kind, size)
            (once,) = timing.measure(call, CPU, repeats=1)
            count = max(1, round(READING_SECONDS / once))
            calls = timing.measure(call, CPU, repeats=count, warmup=0)
            seconds.append(sum(calls) / count)
        return seconds, devices.environment(CPU)
