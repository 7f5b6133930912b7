"""Measure peak memory and time of several ways to run a training step, and inference.

The model is a deep MLP without batch norm: its activations take more memory than its
weights, and a batch split into parts has the same gradients as the whole batch.
"""

import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.adam import Adam
from torch.utils.checkpoint import checkpoint

from core import devices
from core.lessons.speed.memory_result import (
    ACCUMULATED,
    CHECKPOINTED,
    STEP,
    Card,
    MemoryCost,
    MemoryLab,
)
from core.measure import peak_memory, timing
from core.measure.environment import now
from core.measure.peak_memory import MODES
from core.watch import UNWATCHED, Watch
from to_device.names import SIMULATED
from to_device.sim import memory as device_memory
from to_device.sim import simulation

SEGMENTS, LAYERS_A_SEGMENT = 4, 4
PARTS = 4  # small batches per batch, for gradient accumulation
REPEATS = 5
INPUTS, CLASSES = 784, 10  # the sizes of Fashion-MNIST
# Width and batch size. With CPU_SIZE, a step takes 0.2 s on one CPU core.
CPU_SIZE, ACCELERATOR_SIZE = (256, 2048), (1024, 8192)
# Bytes of memory of three simulated accelerators, called cards
CARDS = tuple(size * 2**20 for size in (32, 48, 64))
SMALLEST_BATCH = 256  # images; this batch fits in the memory of all CARDS


def measure(
    device_name: str,
    watch: Watch = UNWATCHED,
    size: tuple[int, int] | None = None,
    repeats: int = REPEATS,
) -> MemoryLab:
    """Measure and report each method's peak memory, then time all of them in turn."""
    device = devices.resolve_timed(device_name)
    if size is None:
        size = CPU_SIZE if device.type == "cpu" else ACCELERATOR_SIZE
    width, batch_size = size
    cards = fill_cards(watch) if simulation.works() else ()
    torch.manual_seed(0)
    model = build(width).to(device)
    inputs = torch.rand(batch_size, INPUTS, device=device)
    targets = torch.randint(CLASSES, (batch_size,), device=device)

    works: dict[tuple[str, str], Callable[[], Any]] = {
        ("training", name): watch.unless_cancelled(partial(way, model, inputs, targets))
        for name, way in TRAINING.items()
    } | {
        ("inference", mode): watch.unless_cancelled(partial(infer, model, inputs, mode))
        for mode in MODES
    }
    firsts: dict[str, list[Tensor]] = {}  # for each kind, its first method's result
    costs = []
    for (kind, name), work in works.items():
        output = work()  # the first call sets things up and is not measured
        result = gradients(model) if kind == "training" else [output.detach().clone()]
        del output  # the output keeps the activations alive
        model.zero_grad()
        peak = peak_memory.peak_bytes(work, device)
        model.zero_grad()
        difference = greatest_difference(result, firsts.setdefault(kind, result))
        greatest = max(float(t.abs().max()) for t in result)
        costs.append(MemoryCost(kind, name, (), peak, difference, greatest))
        watch.report(costs[-1])
    timings = timing.measure_side_by_side(list(works.values()), device, repeats)
    pairs = zip(costs, timings, strict=True)
    return MemoryLab(
        tuple(replace(cost, seconds=seconds) for cost, seconds in pairs),
        batch_size,
        PARTS,
        width,
        SEGMENTS * LAYERS_A_SEGMENT,
        devices.environment(device),
        now(),
        cards,
    )


def build(width: int) -> nn.Sequential:
    """SEGMENTS segments of LAYERS_A_SEGMENT linear layers, with ReLU between layers."""
    hidden = SEGMENTS * LAYERS_A_SEGMENT - 1
    widths = [INPUTS, *[width] * hidden, CLASSES]
    layers: list[nn.Module] = []
    for size in pairwise(widths):
        linear = nn.Linear(*size)
        # With PyTorch's own initialization, the gradients of so many layers vanish.
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        layers += [linear, nn.ReLU()]
    layers.pop()  # no ReLU after the last layer, since outputs may be negative
    stride = 2 * LAYERS_A_SEGMENT
    starts = range(0, len(layers), stride)
    return nn.Sequential(*(nn.Sequential(*layers[at : at + stride]) for at in starts))


def one_batch(model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    """Run forward and backward; every activation is kept for backward."""
    model.zero_grad()
    F.cross_entropy(model(inputs), targets).backward()


def checkpointed(
    model: nn.Sequential,
    inputs: Tensor,
    targets: Tensor,
) -> None:
    """Keep only the input of each segment; backward recomputes the rest."""
    model.zero_grad()
    outputs = inputs
    for segment in model:
        outputs = checkpoint(segment, outputs, use_reentrant=False)
    F.cross_entropy(outputs, targets).backward()


def accumulated(model: nn.Module, inputs: Tensor, targets: Tensor) -> None:
    """Run PARTS small batches; .grad sums their gradients until zero_grad."""
    model.zero_grad()
    parts = zip(inputs.chunk(PARTS), targets.chunk(PARTS), strict=True)
    for few_inputs, few_targets in parts:
        loss = F.cross_entropy(model(few_inputs), few_targets)
        (loss / PARTS).backward()  # added up: the loss of the whole batch


def infer(model: nn.Module, inputs: Tensor, mode: str) -> Tensor:
    """A forward pass under enable_grad, no_grad, or inference_mode."""
    with MODES[mode]():
        return model(inputs)


TRAINING: dict[str, Callable[..., None]] = {
    STEP: one_batch,
    CHECKPOINTED: checkpointed,
    ACCUMULATED: accumulated,
}


def gradients(model: nn.Module) -> list[Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def greatest_difference(first: list[Tensor], second: list[Tensor]) -> float:
    pairs = zip(first, second, strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


# On the simulated accelerator


class CardStep(NamedTuple):
    """The bytes that a training step took on the simulated accelerator."""

    peak: int  # the step's peak, with model and optimizer
    activations: int  # the step's own share of the peak: activations and gradients
    message: str  # the error of the operation that ran out of memory, or ""


def fill_cards(watch: Watch = UNWATCHED) -> tuple[Card, ...]:
    """Find the largest batches that fit in the memory of each of CARDS, by doubling."""
    ways: dict[str, dict[int, CardStep]] = {STEP: {}, CHECKPOINTED: {}}
    for way, steps in ways.items():
        batch_size = SMALLEST_BATCH
        while not steps or steps[batch_size // 2].peak <= max(CARDS):
            watch.check()
            steps[batch_size] = step_on_card(way, batch_size)
            batch_size *= 2
    cards = []
    for card in CARDS:
        fits = {
            way: max(size for size, step in steps.items() if step.peak <= card)
            for way, steps in ways.items()
        }
        with device_memory.limited_to(card):
            too_large = step_on_card(STEP, fits[CHECKPOINTED])
        sizes = {way: steps[fits[STEP]].activations for way, steps in ways.items()}
        cards.append(Card(card, fits, too_large.message, sizes))
    return tuple(cards)


def step_on_card(way: str, batch_size: int) -> CardStep:
    """Measure a model's second training step: by then, Adam has its state."""
    gc.collect()  # the traceback of a failed step may still hold tensors
    torch.manual_seed(0)
    start = device_memory.allocated
    model = build(CPU_SIZE[0]).to(SIMULATED)
    one_batch(model, *random_batch(1))
    optimizer = Adam(model.parameters())
    optimizer.step()
    inputs, targets = random_batch(batch_size)
    model.zero_grad()
    before, message = device_memory.allocated, ""
    device_memory.reset_peak()
    try:
        TRAINING[way](model, inputs, targets)
    except torch.OutOfMemoryError as error:
        message = str(error)
    peak = device_memory.peak
    return CardStep(peak - start, peak - before, message)


def random_batch(size: int) -> tuple[Tensor, Tensor]:
    inputs = torch.rand(size, INPUTS, device=SIMULATED)
    return inputs, torch.randint(CLASSES, (size,), device=SIMULATED)
