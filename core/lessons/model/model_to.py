"""Try what `.to(device)` does to a model, a tensor and an optimizer.

Also try what happens if a move is forgotten.
"""

import traceback
from collections.abc import Collection

import torch
from torch import nn

from core import devices, models
from core.lessons.model.model_result import (
    Forgotten,
    Move,
    MovedTensor,
    MoveTime,
    OptimizerFinding,
)
from core.lessons.model.transfers import crossing
from core.measure import timing
from core.models import ANN
from to_device.names import SIMULATED
from to_device.sim import ledger

REPEATS = 20
Values = dict[str, object]  # an expression's text, and its value


def move(model_name: str, device_name: str) -> Move:
    """Move a new model from the host to a device, and describe each tensor."""
    device = devices.resolve(device_name)
    model = models.build(model_name)
    before = {name: t.device for name, t in model.state_dict().items()}
    allocated_before = devices.allocated(device)

    with ledger.counting() as counts:  # only the simulated accelerator counts
        moved = model.to(device)

    parameters = dict(model.named_parameters())
    return Move(
        tuple(
            MovedTensor(
                name,
                "parameter" if name in parameters else "buffer",
                tuple(tensor.shape),
                str(tensor.dtype).removeprefix("torch."),
                tensor.nbytes,
                str(before[name]),
                str(tensor.device),
            )
            for name, tensor in moved.state_dict().items()
        ),
        allocated_before,
        devices.allocated(device),
        devices.environment(device),
        crossing(counts) if device.type == SIMULATED else None,
    )


def time_move(model_name: str, device_name: str) -> MoveTime:
    """Time `model.to(device)`, with a new model on the host for each repeat."""
    device = devices.resolve_timed(device_name)
    built = [models.build(model_name) for _ in range(REPEATS + 1)]
    seconds = timing.measure(lambda: built.pop().to(device), device, REPEATS)
    return MoveTime(seconds, devices.environment(device))


def copy_of_a_tensor(device: torch.device) -> Values:
    x = torch.ones(2, 3)
    y = x.to(device)
    return {
        "x.device": x.device,
        "y.device": y.device,
        "y is x": y is x,
        "x.to(x.device) is x": x.to(x.device) is x,
    }


def module_in_place(device: torch.device) -> Values:
    model = nn.Linear(3, 2)
    before = next(model.parameters()).device
    moved = model.to(device)
    return {
        "before": before,
        "moved is model": moved is model,
        "next(model.parameters()).device": next(model.parameters()).device,
    }


def what_a_module_moves(device: torch.device) -> Values:
    module = nn.Module()
    module.scale = nn.Parameter(torch.ones(3))
    module.register_buffer("mean", torch.zeros(3))
    module.note = torch.zeros(3)  # an ordinary attribute
    module.to(device)
    return {
        "module.scale.device": module.scale.device,
        "module.mean.device": module.mean.device,
        "module.note.device": module.note.device,
        "list(module.state_dict())": list(module.state_dict()),
    }


def tried(device_name: str) -> dict[str, dict[str, str]]:
    """For each demonstration, the values of its expressions on this device, as text."""
    device = devices.resolve(device_name)
    demonstrations = (copy_of_a_tensor, module_in_place, what_a_module_moves)
    return {
        demonstration.__name__: {
            name: str(value) for name, value in demonstration(device).items()
        }
        for demonstration in demonstrations
    }


def optimizer_findings(device_name: str) -> tuple[OptimizerFinding, ...]:
    """Try AdamW on a moved model: built after the move, built before, or used before.

    On the CPU, where nothing would move, the model is converted to float64 instead,
    since `.to(dtype)` changes a module's tensors in the same way.
    """
    device = devices.resolve(device_name)
    target = torch.float64 if device.type == "cpu" else device
    return tuple(find_out(target, when) for when in ("after", "before", "used"))


def find_out(target: torch.device | torch.dtype, when: str) -> OptimizerFinding:
    """Move a model, make a step, and compare the weights before and after the step."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def step() -> None:
        like = next(model.parameters())
        optimizer.zero_grad()
        model(like.new_ones(4, 3)).sum().backward()
        optimizer.step()

    if when == "used":
        step()
    model.to(target)
    if when == "after":
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    parameter = optimizer.param_groups[0]["params"][0]
    weights = model.weight.detach().clone()
    error = ""
    try:
        step()
    except RuntimeError as raised:
        error = f"{type(raised).__name__}: {raised}".partition("\n")[0]
    return OptimizerFinding(
        str(target).removeprefix("torch."),
        when,
        parameter is model.weight,
        not torch.equal(weights, model.weight),
        error,
    )


def step(device: torch.device, moved: set[str]) -> None:
    model = ANN()
    criterion = nn.CrossEntropyLoss(weight=torch.ones(10))
    inputs = torch.rand(64, 1, 28, 28)
    labels = torch.arange(64) % 10

    if "model" in moved:
        model.to(device)
    if "loss" in moved:  # the loss has a tensor: a weight for each class
        criterion.to(device)
    if "inputs" in moved:
        inputs = inputs.to(device)
    if "labels" in moved:
        labels = labels.to(device)

    outputs = model(inputs)
    loss = criterion(outputs, labels)
    loss.backward()


def attempt(device_name: str, moved: Collection[str]) -> Forgotten:
    """Run `step` with only these moves; return its error, and the error's line."""
    device = devices.resolve(device_name)
    try:
        step(device, set(moved))
        devices.synchronize(device)
    except RuntimeError as error:
        first = step.__code__.co_firstlineno
        lines = [
            line - first + 1
            for frame, line in traceback.walk_tb(error.__traceback__)
            if frame.f_code is step.__code__
        ]
        message = f"{type(error).__name__}: {error}".partition("\n")[0]
        return Forgotten(message, lines[-1] if lines else None)
    return Forgotten()
