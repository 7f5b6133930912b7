"""Weights as a file. core.lessons.checkpoints.upload checks uploaded files."""

import io
from typing import Any

import torch
from torch import Tensor, nn

from core import models
from core.config import RunConfig


def save(
    model: nn.Module,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> bytes:
    """The model's weights as a file.

    They are saved from the CPU by default, so that they load on any machine.
    With a `dtype`, floating-point weights are cast to this dtype.
    """

    def cast(tensor: Tensor) -> Tensor:
        return tensor.to(device, dtype if tensor.is_floating_point() else None)

    state_dict = model.state_dict()
    return pack({name: cast(tensor) for name, tensor in state_dict.items()})


def load(file: bytes, name: str, device: torch.device) -> nn.Module:
    """The model `name` on `device`, with the weights from the file."""
    model = models.build(name).to(device)
    model.load_state_dict(unpack(file, device))
    return model


def load_run(file: bytes, config: RunConfig, device: torch.device) -> nn.Module:
    """Like `load`, but the model treats images as the run's model did."""
    model = models.of_run(config).to(device)
    model.load_state_dict(unpack(file, device))
    return model


def pack(content: dict[str, Any]) -> bytes:
    """The file that torch.save writes for tensors, numbers, or dictionaries."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def unpack(file: bytes, map_location: Any = "cpu") -> Any:
    """The content of a file from torch.save; no code in the file runs."""
    buffer = io.BytesIO(file)
    return torch.load(buffer, map_location=map_location, weights_only=True)
