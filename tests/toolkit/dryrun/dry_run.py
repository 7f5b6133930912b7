"""A dry run in a process of its own."""

import gc
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from textwrap import dedent

from to_device.dryrun.report import DEVICE_ERROR, Report, Request

# A script with a model, of which the method `forward` and what follows are missing
MODEL = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.scale = torch.ones(4)
        self.more = [nn.Linear(4, 4)]
    def forward(self, x):
        {forward}
net = Net()
x = torch.rand(2, 4)
{rest}
"""
LAYER = "return self.layer(x)"  # an ordinary `forward`


def dry_run(text: str, name: str = "script.py", **options) -> Report:
    if "memory" in options:
        options["capacity"] = options["memory"]
    context = multiprocessing.get_context("forkserver")
    modules = ["torch", "torch._dynamo", "to_device.sim.operations"]
    context.set_forkserver_preload(modules)
    with ProcessPoolExecutor(1, context) as processes:
        request = Request(name, dedent(text), **options)
        return processes.submit(_run, request).result(180)


def _run(request: Request) -> Report:
    """Run in the child, which alone imports torch with the simulated device."""
    import torch

    from to_device.dryrun.run import run

    gc.freeze()  # a collection would look at all that the parent has loaded
    torch.set_num_threads(1)
    return run(request)


def check_culprit(forward: str, rest: str, culprit: int, message: str) -> None:
    """A script with MODEL fails on the device, and this line of it is to change."""
    report = dry_run(MODEL.format(forward=forward, rest=rest))
    assert report.status == DEVICE_ERROR
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == culprit
    assert message in f"{report.failure.message} {report.failure.why}"
    assert "sim" not in report.failure.message.lower()
