"""One batch through the training loop, which stops after each step.

No model is stored between two batches: to inspect a batch, `inspect_batch` trains again
from the seed.
"""

import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from core import devices
from core.config import RunConfig
from core.data import datasets
from core.lessons.model.model_result import (
    MOST_BATCHES,
    BatchStage,
    Group,
    SteppedBatch,
    TensorSummary,
)
from core.lessons.model.transfers import crossing
from core.training import Training
from to_device.names import SIMULATED
from to_device.sim import ledger, memory

BATCH_SIZE = 64
SAMPLES = 8  # images of the batch that the page shows, with their logits

# Locked while a seeded model is trained: threads share torch's random generator.
_generator_lock = threading.Lock()


def walk(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    criterion: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
) -> Iterator[dict[str, Tensor]]:
    """Move the batch, make the five steps; yield each step's new tensors."""
    inputs = inputs.to(device)
    targets = targets.to(device)
    yield {"inputs": inputs, "targets": targets}

    optimizer.zero_grad()
    yield {}

    outputs = model(inputs)
    yield {"outputs": outputs}

    loss = criterion(outputs, targets)
    yield {"loss": loss}

    loss.backward()
    yield {}

    optimizer.step()
    yield {}


def inspect_batch(
    task: str, model_name: str, device_name: str, seed: int, number: int
) -> SteppedBatch:
    """Train from the seed to batch `number` (from 1), and inspect each of its steps."""
    dataset = datasets.load(task)
    config = RunConfig(
        task=task,
        model=model_name,
        device=device_name,
        batch_size=BATCH_SIZE,
        seed=seed,
    )
    with _generator_lock:
        allocated = memory.allocated
        training = Training(config, dataset.train.first(BATCH_SIZE * MOST_BATCHES))
        model, device = training.model, training.device
        optimizer = torch.optim.AdamW(model.parameters())
        training.optimizer = optimizer
        feed = list(training.feed)
        deque(training.train_epoch(feed[: number - 1]), maxlen=0)
        model.train()
        inputs, targets = feed[number - 1]
        parameters = dict(model.named_parameters())
        before = {
            name: p.detach().to("cpu", copy=True) for name, p in parameters.items()
        }
        stages, tensors = [], dict[str, Tensor]()
        steps = walk(model, inputs, targets, training.criterion, optimizer, device)
        while True:
            with ledger.counting() as counts:
                new = next(steps, None)
            if new is None:
                break
            tensors |= new
            gradients = {
                name: None if p.grad is None else p.grad.norm().item()
                for name, p in parameters.items()
            }
            moved = {
                name: (p.detach().cpu() - before[name]).norm().item()
                for name, p in parameters.items()
            }
            summaries = tuple(summary(*item) for item in new.items())
            groups = tensor_groups(model, tensors, optimizer, allocated)
            crossed = crossing(counts) if device.type == SIMULATED else None
            stages.append(BatchStage(groups, summaries, gradients, moved, crossed))
        outputs = tensors["outputs"].detach()[:SAMPLES].cpu()
    return SteppedBatch(
        tuple(stages),
        inputs[:SAMPLES, 0].cpu().numpy(),
        tuple(targets[:SAMPLES].tolist()),
        outputs.numpy(),
        outputs.softmax(dim=1).numpy(),
        dataset.classes,
        devices.environment(device),
    )


def tensor_groups(
    model: nn.Module,
    tensors: Mapping[str, Tensor],
    optimizer: Optimizer,
    allocated: int,
) -> tuple[Group, ...]:
    """The bytes of each kind of tensor on each device.

    `allocated` is how many bytes the simulated accelerator held before the model was
    built. It now holds these bytes, the named tensors, and otherwise only
    activations, which autograd saves for the backward pass.
    """
    named = [("model", tensor) for tensor in model.state_dict().values()]
    named += tensors.items()
    grads = (p.grad for p in model.parameters())
    named += [("gradients", grad) for grad in grads if grad is not None]
    for state in optimizer.state.values():
        named += [
            ("step counts" if name == "step" else "optimizer state", tensor)
            for name, tensor in state.items()
        ]
    sizes = Counter[tuple[str, str]]()
    for name, tensor in named:
        sizes[name, str(tensor.device)] += tensor.nbytes
        if tensor.device.type == SIMULATED:
            blocks = -(-tensor.untyped_storage().nbytes() // memory.GRANULE)
            allocated += blocks * memory.GRANULE
    device = next(model.parameters()).device
    if device.type == SIMULATED and memory.allocated > allocated:
        sizes["activations", str(device)] = memory.allocated - allocated
    return tuple(Group(*place, size) for place, size in sizes.items())


def summary(name: str, tensor: Tensor) -> TensorSummary:
    values = tensor.detach().float()
    return TensorSummary(
        name,
        str(tensor.device),
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        values.min().item(),
        values.mean().item(),
        values.max().item(),
    )
