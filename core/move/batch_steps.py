"""One batch through the training loop, stopped after each step to look at the tensors.

Nothing is kept between two looks: a batch is made again from the seed, with as many
batches before it as it had.
"""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from core import devices
from core.config import RunConfig
from core.data import datasets
from core.move.results import BatchStage, Held, SteppedBatch, TensorSummary
from core.training import Training

BATCH_SIZE = 64
SHOWN = 8  # samples of the batch whose images and logits are shown
MOST_BATCHES = 100

# Torch's generator is one for the whole process, where several people ask at once.
_seeded = threading.Lock()


def walk(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    criterion: nn.Module,
    optimizer: Optimizer,
    device: torch.device,
) -> Iterator[dict[str, Tensor]]:
    """The move and the five steps; yields the tensors that each has made."""
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
    """Batch `number` (1, 2, ...) of a training run, stopped after every step."""
    dataset = datasets.load(task)
    config = RunConfig(
        task=task,
        model=model_name,
        device=device_name,
        batch_size=BATCH_SIZE,
        seed=seed,
    )
    with _seeded:
        training = Training(config, dataset.train.first(BATCH_SIZE * MOST_BATCHES))
        model, device = training.model, training.device
        training.optimizer = torch.optim.AdamW(model.parameters())  # with its defaults
        feed = list(training.feed)
        for _ in training.train_epoch(feed[: number - 1]):
            pass
        model.train()
        inputs, targets = feed[number - 1]
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        stages, there = [], dict[str, Tensor]()
        for tensors in walk(
            model, inputs, targets, training.criterion, training.optimizer, device
        ):
            there |= tensors
            memories = held(model, there, training.optimizer)
            stages.append(stage(tensors, model, before, memories))
            if "outputs" in tensors:
                outputs = tensors["outputs"].detach()[:SHOWN].cpu()
    return SteppedBatch(
        tuple(stages),
        inputs[:SHOWN, 0].cpu().numpy(),
        tuple(targets[:SHOWN].tolist()),
        outputs.numpy(),
        outputs.softmax(dim=1).numpy(),
        dataset.classes,
        devices.environment(device),
    )


def stage(
    tensors: dict[str, Tensor],
    model: nn.Module,
    before: dict[str, Tensor],
    memories: tuple[Held, ...],
) -> BatchStage:
    """What there is to see now: some tensors, gradients, how far weights have moved."""
    named = dict(model.named_parameters())
    return BatchStage(
        memories,
        tuple(look(name, tensor) for name, tensor in tensors.items()),
        {
            name: None if p.grad is None else p.grad.norm().item()
            for name, p in named.items()
        },
        {name: (p.detach() - before[name]).norm().item() for name, p in named.items()},
    )


def held(
    model: nn.Module, tensors: Mapping[str, Tensor], optimizer: Optimizer
) -> tuple[Held, ...]:
    """What the memories hold now. AdamW counts its steps on the host."""
    there = [("model", tensor) for tensor in model.state_dict().values()]
    there += tensors.items()
    grads = (p.grad for p in model.parameters())
    there += [("gradients", grad) for grad in grads if grad is not None]
    for state in optimizer.state.values():
        there += [
            ("step counts" if name == "step" else "optimizer state", tensor)
            for name, tensor in state.items()
        ]
    sizes = Counter[tuple[str, str]]()
    for name, tensor in there:
        sizes[name, str(tensor.device)] += tensor.nbytes
    return tuple(Held(*place, size) for place, size in sizes.items())


def look(name: str, tensor: Tensor) -> TensorSummary:
    """A tensor as one row of a table."""
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
