"""Torch does the work of the browser's GPU, to check its answers and compare its times.

The browser draws the same matrices by the same formula. So the server sends only
images, parameters and answers.
"""

import base64
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn

from core import devices, models, state_dict
from core.data import datasets
from core.lessons.compare.candidates import spare
from core.lessons.compare.your_gpu_result import BATCH_SIZE, BATCH_SIZES, SIZES, STEPS
from core.loops import Batches, train_epoch
from core.measure import timing
from core.measure.environment import Environment

CPU = torch.device("cpu")
BATCHES = 20  # the training repeats these batches
TEST_IMAGES = 1000  # a larger batch repeats these images
FACTORS = (0x9E3779B1, 0x85EBCA77)  # for `matrices`, one for each
READING_SECONDS = 0.04  # as long as a reading in your_gpu.js


def matrices(n: int) -> Tensor:
    """Float32 (2, n, n) with values from -0.5 to 0.5, the same as your_gpu.js draws."""
    factors = torch.tensor(FACTORS)[:, None, None]
    bits = (torch.arange(n * n).view(n, n) ** 2 * factors) & 0xFFFFFFFF
    return (bits.double() / 2**32 - 0.5).float()


@cache
def products() -> list[tuple[int, str]]:
    """For each size n, the product a @ b times a vector, the first row of b."""
    pairs = [(n, *matrices(n)) for n in SIZES]
    return [(n, packed(a @ b @ b[0])) for n, a, b in pairs]


def packed(tensor: Tensor) -> str:
    """The tensor's bytes as text, in base64."""
    return base64.b64encode(tensor.detach().numpy().tobytes()).decode()


def parameters(model: nn.Module) -> list[str]:
    """Each layer's weights (inputs, outputs) and its bias, packed."""
    return [packed(parameter.t()) for parameter in model.parameters()]


def training(model: nn.Module) -> Callable[[Batches], Iterator[Tensor]]:
    """A function that trains as the browser's GPU does, and yields each step's loss."""
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return lambda batches: train_epoch(model, batches, criterion, optimizer, CPU)


def prepare(checkpoint: bytes | None, task: str) -> dict[str, Any]:
    """The data for the browser.

    The logits are those of the checkpoint's model. Without a checkpoint, they are those
    of a model that has been trained here for STEPS steps.
    """
    dataset = datasets.load(task)
    few = dataset.train.first(BATCHES * BATCH_SIZE)
    images, labels = few.images.split(BATCH_SIZE), few.labels.split(BATCH_SIZE)
    batches = list(zip(images, labels, strict=True)) * (STEPS // BATCHES)
    model: nn.Module = models.ANN()
    start = parameters(model)
    losses = [loss.item() for loss in training(model)(batches)]
    if checkpoint:
        model = state_dict.load(checkpoint, "ann", CPU)
    test = dataset.test.images[:TEST_IMAGES]
    return {
        "factors": FACTORS,
        "products": products(),
        "batches": BATCH_SIZES,
        "images": packed(test),
        "parameters": parameters(model),
        "logits": packed(model(test)),
        "training": packed(few.images),
        "labels": packed(few.labels.byte()),
        "start": start,
        "losses": losses,
    }


@cache
def work(kind: str, size: int) -> Callable[[], object]:
    """The same work that the browser's GPU does, ready to be timed."""
    if kind == "product":
        a, b = matrices(size)
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
            seconds.append(fmean(timing.measure(call, CPU, count, warmup=0)))
        return seconds, devices.environment(CPU)
