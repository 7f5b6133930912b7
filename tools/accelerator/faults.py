"""What goes wrong on a device, through the engine and its workers.

After each fault the next run has to work, and the device's memory has to be free.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from core import devices, models
from core.config import RunConfig
from core.data import datasets
from core.jobs import child_process
from core.jobs.engine import Engine
from core.jobs.job import Job
from core.lessons.mistakes.examples.fixtures import saved_on_cuda
from core.lessons.speed import rungs
from core.lessons.speed.climb_result import Kept
from core.watch import Watch
from tests.app.jobs.follow import (
    LONG,
    RUN,
    SHORT,
    Counted,
    finish,
    running,
    train_worker,
    wait,
)
from tests.app.lessons.checkpoints.files import made_on_a_device
from to_device.errors import ExplainedError
from tools.accelerator.step import Part, Results, Setting, WrongError, work_through

UNTRIED = (
    "whether memory is freed, a graph, an assertion in a kernel, files from a GPU."
)
SLACK_BYTES = 2**30  # what a context takes, which a worker may have anew
FREED_SECONDS = 30.0
CANCEL_SECONDS = 10.0
HERE = "tools.accelerator.faults"


def run(setting: Setting, results: Results) -> None:
    engine = Engine()
    try:
        engine.ask("core.devices:describe", seconds=120)
        finish(engine, engine.submit(RUN, SHORT))  # every context is there by now
        faults = Faults(engine, setting.device)
        parts = {
            "out of memory": faults.out_of_memory,
            "a NaN": faults.nan,
            "a killed worker with memory": faults.killed_worker,
            "cancelled in a graph": faults.cancelled_in_a_graph,
            "two lanes": faults.two_lanes,
            "a hostile checkpoint": faults.hostile_checkpoint,
            "a device-side assert": faults.device_side_assert,
        }
        work_through(
            [Part(name, 20.0, work) for name, work in parts.items()], setting, results
        )
    finally:
        engine.close()


class Faults:
    """Each is made on purpose, and what came of it is returned."""

    def __init__(self, engine: Engine, device: torch.device) -> None:
        self._engine, self._device = engine, device

    def out_of_memory(self) -> dict[str, Any]:
        """A run that takes all memory is told what to try."""
        with self._mended() as found:
            job = self._end_of("take_all", RunConfig(batch_size=4096))
            found["said"] = job.message
            assert job.status == "failed", f"The run {job.status}."
            assert "Try 1,024" in job.message, f"No batch to try: {job.message}"
        return found

    def nan(self) -> dict[str, Any]:
        """A loss that overflows ends its run with advice."""
        with self._mended() as found:
            wild = RunConfig(task="sprites", learning_rate=1e25)
            job = finish(self._engine, self._engine.submit(RUN, wild))
            found["said"] = job.message
            assert job.status == "failed", f"The run {job.status}."
            assert "learning rate" in job.message, f"No advice: {job.message}"
        return found

    def killed_worker(self) -> dict[str, Any]:
        """What a worker held on the device is free once it was killed."""
        size = 2**26 if self._device.type == "cpu" else 8 * 2**30
        with self._mended() as found:
            before = self._free()
            job_id = self._engine.submit(f"{HERE}:hold", size)
            self._reported(job_id)
            found["held"] = before - self._free()
            seen = self._device.type == "cpu" or found["held"] > size / 2
            assert seen, "The memory that the job holds is not to be seen."
            train_worker(self._engine).kill()
            began = time.monotonic()
            job = finish(self._engine, job_id)
            found |= {"seconds": time.monotonic() - began, "said": job.message}
            assert job.status == "failed", f"The run {job.status}."
        return found

    def cancelled_in_a_graph(self) -> dict[str, Any]:
        """Steps that are replayed hear of a cancel as others do."""
        with self._mended() as found:
            job_id = self._engine.submit(f"{HERE}:replay")
            self._reported(job_id)
            began = time.monotonic()
            self._engine.cancel(job_id)
            job = finish(self._engine, job_id)
            found |= {"seconds": time.monotonic() - began, "rung": rung_here()}
            assert job.status == "cancelled", f"The run {job.status}. {job.message}"
            assert found["seconds"] < CANCEL_SECONDS, "The cancel came late."
        return found

    def two_lanes(self) -> dict[str, Any]:
        """A run trains while the lab measures on the same device."""
        with self._mended() as found:
            trained = self._engine.submit(RUN, LONG)
            running(self._engine, trained)
            lab = "core.lessons.device.parallel:measure"
            measured = self._engine.submit(lab, "auto", lane="lab")
            job = finish(self._engine, measured)
            assert job.status == "finished", f"The lab's job failed: {job.message}"
            self._engine.cancel(trained)
            job = finish(self._engine, trained)
            found["run"] = job.status
            assert job.status != "failed", f"The run failed: {job.message}"
        return found

    def hostile_checkpoint(self) -> dict[str, Any]:
        """Files that name CUDA tensors are opened where there is no device."""
        with self._mended() as found:
            found["seen"] = self._engine.ask(f"{HERE}:seen_by_strangers", seconds=60)
            assert found["seen"]["hostile"] == 0, "The stranger's file sees a device."
            others = found["seen"]["others"] > 0
            assert others == (self._device.type != "cpu"), "Nor does any other child."
            # In a child: it makes torch.save say so of every model from then on.
            named = child_process.call(f"{HERE}:named_cuda", seconds=60)
            opened = self._open(named)
            found["named"] = sorted({each.device for each in opened.tensors})
            try:
                self._open(made_on_a_device())
            except ExplainedError as error:
                found["said"] = str(error)
            assert "said" in found, "A file that makes tensors on a device was opened."
        return found

    def device_side_assert(self) -> dict[str, Any]:
        """It spoils its worker's context, and nothing else."""
        with self._mended() as found:
            before = train_worker(self._engine).pid
            job = self._end_of("index_out_of_bounds")
            found["said"] = job.message
            assert job.status == "failed", f"The run {job.status}."
            assert "out of range" in job.message, f"No advice: {job.message}"
            found["again"] = finish(
                self._engine, self._engine.submit(RUN, SHORT)
            ).status
            found["another process"] = train_worker(self._engine).pid != before
        return found

    # How it is seen

    @contextmanager
    def _mended(self) -> Iterator[dict[str, Any]]:
        """For what a fault finds; after it the memory is free and a run works."""
        found: dict[str, Any] = {"free_before": self._free()}
        try:
            yield found
            if self._device.type != "cpu":
                found["freed_seconds"] = self._until_freed(found["free_before"])
            job = finish(self._engine, self._engine.submit(RUN, SHORT))
            assert job.status == "finished", f"The next run {job.status}: {job.message}"
        except AssertionError as error:
            raise WrongError(str(error), found) from error

    def _until_freed(self, before: int) -> float:
        """Seconds until as much memory is free as before."""
        began = time.monotonic()
        while (taken := before - self._free()) > SLACK_BYTES:
            late = time.monotonic() - began > FREED_SECONDS
            assert not late, f"{taken / 2**30:.1f} GiB are still taken."
            time.sleep(0.1)
        return time.monotonic() - began

    def _free(self) -> int:
        """Bytes that nobody has; on a CPU they say nothing, since others use it too."""
        return devices.memory(self._device)[0] or 0

    def _end_of(self, function: str, *arguments: Any) -> Job:
        return finish(
            self._engine, self._engine.submit(f"{HERE}:{function}", *arguments)
        )

    def _reported(self, job_id: str) -> None:
        """Wait until the job has told of itself."""

        def told() -> bool:
            job = self._engine.job(job_id)
            assert job is not None
            assert not job.ended, f"It {job.status} at once: {job.message}"
            return any(isinstance(event, Counted) for event in job.events)

        wait(told)

    def _open(self, data: bytes) -> Any:
        address = "core.lessons.checkpoints.upload:open_safely"
        return self._engine.ask(address, data, "model.pt", seconds=60, lane="upload")


# In a worker


def take_all(_config: RunConfig, watch: Watch) -> None:
    """Take memory until there is none; of a host, at once more than there can be."""
    device = devices.resolve("auto")
    block = 2**60 if device.type == "cpu" else 2**30
    held = []
    while True:
        watch.check()
        held.append(torch.empty(block, dtype=torch.uint8, device=device))


def hold(size: int, watch: Watch) -> None:
    """Hold memory until somebody ends it."""
    held = torch.ones(size, dtype=torch.uint8, device=devices.resolve("auto"))
    watch.report(Counted(len(held)))
    while True:
        watch.check()
        time.sleep(0.05)


def replay(watch: Watch) -> None:
    """Train without an end, from a graph where there are any."""
    device = devices.resolve("auto")
    split = datasets.load("sprites").train
    set_up = getattr(rungs, rung_here())
    epoch = set_up(split, models.ANN().to(device), device, Kept())
    number = 0
    while True:
        for _ in epoch():
            watch.check()
        number += 1
        watch.report(Counted(number))


def rung_here() -> str:
    """The rung with a graph; another, where a device has none."""
    cuda = devices.backend(devices.resolve("auto")) == "CUDA"
    return "graphed" if cuda else "fused"


def index_out_of_bounds() -> float:
    """On CUDA no error of Python's: an assertion in a kernel."""
    device = devices.resolve("auto")
    there = torch.full((4,), 99, device=device)
    return torch.zeros(10, device=device)[there].sum().item()


def seen_by_strangers() -> dict[str, int]:
    """How many accelerators a child sees that opens a stranger's file, and others."""
    address = f"{HERE}:accelerators"
    return {
        "hostile": child_process.call(address, hostile=True),
        "others": child_process.call(address),
    }


def accelerators() -> int:
    return len(devices.every()) - 1


def named_cuda() -> bytes:
    """A file of torch.save that has every tensor on cuda:0."""
    return saved_on_cuda(models.ANN()).getvalue()
