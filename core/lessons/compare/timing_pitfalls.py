"""Why is your timing wrong? The same operation, timed in three ways.

Each way has a process of its own. Its first call sets up the library that multiplies
and, on a CPU, the thread pool, as the first product of a script does.
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from core import devices
from core.jobs import child_process
from core.lessons.compare.timing_pitfalls_result import (
    WAYS,
    Reading,
    ThreadReading,
    TimingLab,
)
from core.measure import timing
from core.measure.environment import now
from core.watch import UNWATCHED, Watch

CPU_SIZE, DEVICE_SIZE = 512, 4096  # rows of the square matrices
CALLS = 20
PAIRS = 5  # how often two ways of timing are compared, with CALLS calls of each way
WARM_UP = 5
THREAD_SIZES = (32, 1024)
THREAD_REPEATS = 20
CHILD_SECONDS = 120.0


def measure(device_name: str, watch: Watch = UNWATCHED) -> TimingLab:
    """Time the multiplication of two square matrices in each of WAYS."""
    device = devices.resolve_timed(device_name)
    size = CPU_SIZE if device.type == "cpu" else DEVICE_SIZE
    readings = []
    path = "core.lessons.compare.timing_pitfalls:in_a_new_process"
    setting = device_name, size, torch.get_num_threads()
    for way in watch.until_cancelled(WAYS):
        seconds = child_process.call(path, way, *setting, seconds=CHILD_SECONDS)
        readings.append(Reading(way, tuple(seconds)))
        watch.report(readings[-1])
    watch.check()
    queueing = child_process.call(path, "", *setting, seconds=CHILD_SECONDS)
    watch.check()
    return TimingLab(
        device_name,
        size,
        tuple(readings),
        tuple(queueing),
        threads_trap(devices.usable_cores()),
        devices.environment(device),
        devices.environment(torch.device("cpu")),
        now(),
    )


def in_a_new_process(
    way: str, device_name: str, size: int, threads: int
) -> list[float]:
    """Call `time_it` with a way, or `queueing` if `way` is "", on a matrix product."""
    torch.set_num_threads(threads)
    device = devices.resolve_timed(device_name)
    matrix = torch.rand(size, size).to(device)

    def multiply() -> Tensor:
        return matrix @ matrix

    return time_it(way, multiply, device) if way else queueing(multiply, device)


def queueing(
    work: Callable[[], object],
    device: torch.device,
    synchronize: Callable[[torch.device], None] = devices.synchronize,
) -> list[float]:
    """Return PAIRS ratios of synchronized calls' time to naive calls' time.

    Each time is a median. Both kinds of calls are timed in turn in one
    process, so that their times can be compared.
    """
    ratios = []
    for _ in range(PAIRS):
        naive, right = (
            median(time_it(way, work, device, synchronize))
            for way in ("naive", "synchronize and warm-up")
        )
        ratios.append(right / naive)
    return ratios


def time_it(
    way: str,
    work: Callable[[], object],
    device: torch.device,
    synchronize: Callable[[torch.device], None] = devices.synchronize,
) -> list[float]:
    """Time each call of `work` in one of WAYS; returns the seconds."""
    if way == "synchronize and warm-up":
        for _ in range(WARM_UP):
            work()
    seconds = []
    for _ in range(CALLS):
        if way != "naive":
            synchronize(device)
        start = time.perf_counter()
        work()
        if way != "naive":
            synchronize(device)
        seconds.append(time.perf_counter() - start)
    return seconds


def threads_trap(cores: int) -> tuple[ThreadReading, ...]:
    """Time a small and a large product with one CPU thread and with all, in turn."""
    device = torch.device("cpu")
    readings = []
    for size in THREAD_SIZES:
        matrix = torch.rand(size, size)
        seconds: dict[int, tuple[float, ...]] = dict.fromkeys(sorted({1, cores}), ())
        for _ in range(THREAD_REPEATS):
            for threads in seconds:
                with devices.cpu_threads(threads):
                    seconds[threads] += timing.measure(
                        lambda matrix=matrix: matrix @ matrix,  # type: ignore[misc]
                        device,
                        repeats=1,
                        warmup=1,  # the first call after a change of threads is slow
                    )
        readings += [ThreadReading(size, *reading) for reading in seconds.items()]
    return tuple(readings)
