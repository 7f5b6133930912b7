"""How much memory a piece of work takes at its peak, on a device or on the host."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile


def peak_bytes(work: Callable[[], object], device: torch.device) -> int | None:
    """Bytes of tensors alive at once, at most, beyond those alive at the start.

    CUDA's allocator counts for itself. On the CPU, torch.profiler records each
    allocation and each release. None where a device has neither.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        work()
        torch.cuda.synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    if device.type != "cpu":
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    changes = sorted(
        (event["ts"], event["args"]["Bytes"])
        for event in events
        if event["name"] == "[memory]"
    )
    alive = peak = 0
    for _, change in changes:
        alive += change
        peak = max(peak, alive)
    return peak
