"""Read our own checkpoints, and check that a loaded model equals the saved one."""

import io
from dataclasses import replace
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from core import devices, loops, models, state_dict
from core.config import RunConfig
from core.data import datasets, feeds
from core.jobs import child_process
from core.lessons.checkpoints.checkpoints_result import RoundTrip, TensorInfo
from core.watch import UNWATCHED, Watch


def read(data: bytes) -> tuple[dict[str, Any], dict[int, str]]:
    """Return what is in a file from torch.save, without running any of it.

    Also return a dict from each storage's address in memory to the device that
    it was saved from. All storages stay on the host, whatever the file says.
    """
    saved_from: dict[int, str] = {}

    def keep_on_cpu(storage: Any, location: str) -> Any:
        saved_from[storage.data_ptr()] = location
        return storage

    return state_dict.unpack(data, keep_on_cpu), saved_from


def describe(
    tensors: dict[str, Tensor], saved_from: dict[int, str]
) -> tuple[TensorInfo, ...]:
    """Describe each tensor; `saved_from` comes from `read`."""
    return tuple(
        TensorInfo(
            name,
            tuple(tensor.shape),
            str(tensor.dtype).removeprefix("torch."),
            tensor.nbytes,
            saved_from.get(tensor.untyped_storage().data_ptr(), "not recorded"),
        )
        for name, tensor in tensors.items()
    )


def inspect(checkpoint: bytes) -> tuple[TensorInfo, ...]:
    return describe(*read(checkpoint))


def untrained() -> tuple[bytes, tuple[TensorInfo, ...]]:
    """The checkpoint of an untrained ANN, and a description of its tensors."""
    file = state_dict.save(models.ANN())
    return file, inspect(file)


def to_safetensors(checkpoint: bytes) -> bytes:
    tensors, _ = read(checkpoint)
    return safetensors.torch.save({name: t.contiguous() for name, t in tensors.items()})


def saved_on(device: torch.device) -> bytes:
    model = nn.Linear(3, 2).to(device)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.getvalue()


def load_as_saved(file: bytes) -> torch.device:
    state = torch.load(io.BytesIO(file))
    return state["weight"].device


def load_on_the_cpu(file: bytes) -> torch.device:
    state = torch.load(io.BytesIO(file), map_location="cpu")
    return state["weight"].device


def load_for_the_device(file: bytes) -> torch.device:
    gpu = torch.accelerator.current_accelerator(check_available=True)
    device = gpu or "cpu"
    opened = io.BytesIO(file)
    state = torch.load(opened, map_location=device, weights_only=True)
    model = nn.Linear(3, 2)
    model.load_state_dict(state)
    model.to(device)  # load_state_dict left the model on the CPU
    return next(model.parameters()).device


def load_elsewhere(device_name: str) -> dict[str, str]:
    """Save a file on the device, and load it in a process without the device.

    The result maps each loading function's name to the tensors' device or the error.
    """
    file = saved_on(devices.resolve(device_name))
    address = f"{__name__}:load_both_ways"
    # `hostile` hides real devices.
    return child_process.call(address, file, hostile=True)


def load_both_ways(file: bytes) -> dict[str, str]:
    ends = {}
    for load in (load_as_saved, load_on_the_cpu, load_for_the_device):
        try:
            ends[load.__name__] = str(load(file))
        except RuntimeError as error:
            ends[load.__name__] = f"{type(error).__name__}: {error}"
    return ends


def measure(
    checkpoint: bytes,
    config: RunConfig,
    save_on: str,
    load_on: str,
    dtype: str = "float32",
    watch: Watch = UNWATCHED,
) -> RoundTrip:
    """Save a trained model on one device, load it on another, and compare.

    All logits of the test set are compared element by element, on the host.
    """
    there, here = devices.resolve(save_on), devices.resolve(load_on)
    test = datasets.load(config.task).test
    config = replace(config, half=False)  # devices differ in how they round

    def logits(model: nn.Module, device: torch.device) -> Tensor:
        feed = watch.until_cancelled(feeds.in_order(test, device))
        return loops.predict(model, feed, device)[0].cpu()

    model = state_dict.load_run(checkpoint, config, there)
    before = logits(model, there)
    file = state_dict.save(model, there, getattr(torch, dtype))
    after = logits(state_dict.load_run(file, config, here), here)

    difference = (before - after).abs()
    changed = before.argmax(dim=1) != after.argmax(dim=1)
    return RoundTrip(
        saved_on=devices.backend(there),
        loaded_on=devices.backend(here),
        dtype=dtype,
        bytes=len(file),
        values=before.numel(),
        greatest_difference=difference.max().item(),
        differing_values=int((before != after).sum()),
        differing_predictions=int(changed.sum()),
        images=len(test),
        environment=devices.environment(here),
    )
