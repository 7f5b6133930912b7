"""The most memory that a piece of work takes at once."""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import accumulate
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from to_device.names import SIMULATED

# The profiler's recorder writes two lines a profile and, without a GPU, an error, which
# would look like failures in the log. Level 6 is above all of these.
os.environ.setdefault("KINETO_LOG_LEVEL", "6")

# How to run inference: with autograd, without it, and without it for good, so that
# training can never use the resulting tensors.
MODES: dict[str, Callable[[], AbstractContextManager]] = {
    "gradients": torch.enable_grad,
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
}


def peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """The most bytes of tensors alive at once, beyond those alive at the start.

    CUDA and the simulated accelerator count these bytes themselves. On the CPU,
    torch.profiler records allocations and releases. On other devices, this is None.
    """
    if device.type in ("cuda", SIMULATED):
        module = torch.get_device_module(device)
        module.synchronize(device)
        module.reset_peak_memory_stats(device)
        before = module.memory_allocated(device)
        work()
        module.synchronize(device)
        return module.max_memory_allocated(device) - before
    if device.type != "cpu":
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    changes = sorted(
        (event["ts"], event["args"]["Bytes"])
        for event in json.loads(chrome_trace(profiler))["traceEvents"]
        if event["name"] == "[memory]"
    )
    return max(accumulate((change for _, change in changes), initial=0))


def chrome_trace(profiler: profile) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return path.read_bytes()
