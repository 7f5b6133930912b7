"""Results as a machine with a "Testing card" might bring them, small and made up.

Without torch, since tests of pages build on them too.
"""

from dataclasses import asdict, replace

from core.config import RunConfig
from core.lessons.compare.candidates import Candidate
from core.lessons.compare.crossover_result import Cell, Crossover
from core.lessons.compare.device_queue_result import Call, QueueLab, Timeline
from core.lessons.compare.race_result import Race, Trial
from core.lessons.compare.step_profile_result import PARTS, StepProfile
from core.lessons.compare.timing_pitfalls_result import (
    WAYS,
    Reading,
    ThreadReading,
    TimingLab,
)
from core.lessons.compare.your_gpu_result import BATCH_SIZES, SIZES, BrowserGpu, Work
from core.lessons.device.parallel_result import (
    AT_ONCE,
    IN_TURN,
    Multiplications,
    Multiplied,
)
from core.lessons.model.model_result import Transfer, Transfers
from core.lessons.scale.scale_result import Cost, Gradients, Share, Step
from core.lessons.speed.climb_result import (
    RUNGS,
    Climb,
    Climbed,
    Counts,
    Direct,
    Result,
    Roofline,
    Rung,
)
from core.lessons.speed.copies_result import (
    CPU,
    ITEM,
    ONCE,
    Copied,
    CopiesLab,
    Fetched,
    Waited,
)
from core.lessons.speed.loader_result import LoaderCell, LoaderLab, LoaderPlan
from core.lessons.speed.memory_result import (
    ACCUMULATED,
    CHECKPOINTED,
    STEP,
    Card,
    MemoryCost,
    MemoryLab,
)
from core.lessons.speed.time_to_accuracy_result import (
    Tested,
    TimeToAccuracy,
)
from core.lessons.speed.vectorize_result import (
    NUMPY,
    PYTHON,
    TORCH,
    NumpyEnvironment,
    Vectorized,
    VectorizeLab,
)
from core.measure.environment import DeviceSummary, Environment, Machine

DATE = "2026-11-20T10:00:00+00:00"
PROCESSOR = Environment(
    device="cpu",
    device_name="A processor",
    backend="CPU",
    threads=2,
    torch="2.15.0",
    python="3.11.7",
    system="Linux x86_64",
)
CARD = replace(PROCESSOR, device="cuda", device_name="Testing card", backend="CUDA")


def machine(*backends: str, cores: int = 2) -> Machine:
    """A machine with a device of each backend, named "A CUDA" and so on."""
    names = {"CPU": "cpu", "MPS": "mps"}  # the others are called "cuda"
    devices = (
        DeviceSummary(
            device=names.get(backend, "cuda"),
            device_name=f"A {backend}",
            backend=backend,
            threads=1,
            torch="",
            python="",
            system="",
            free_bytes=None,
            total_bytes=None,
        )
        for backend in backends
    )
    return Machine(tuple(devices), cores, cores)


# What Compare measures

PAIR = (
    Candidate("cpu", "CPU", "CPU (2 threads)", 2),
    Candidate("cuda", "CUDA", "Testing card", 2),
)
MULTIPLIED = Multiplications(
    tuple(
        Multiplied(work, way, (seconds,) * 3, "cpu")
        for work, way, seconds in (
            (AT_ONCE, "Python loop", 4e-8),
            (AT_ONCE, "One core", 1e-10),
            (IN_TURN, "Python loop", 2e-8),
            (IN_TURN, "One core", 1e-6),
        )
    ),
    2,
    PROCESSOR,
    DATE,
)
RACE = Race(
    candidates=PAIR,
    environments=(PROCESSOR, CARD),
    config=RunConfig(model="ann", epochs=1),
    steps=10,
    repeats=3,
    trials=tuple(
        Trial(
            candidate=candidate,
            repeat=repeat,
            steps=10,
            train_seconds=1.0 + repeat - 0.5 * candidate,
            train_samples=640,
            evaluate_seconds=0.1,
            evaluate_samples=1000,
            joules=5.0 if candidate else None,
            losses=(),
        )
        for repeat in range(4)
        for candidate in (0, 1)
    ),
    failures=(),
    date=DATE,
)
CROSSOVER = Crossover(
    candidates=PAIR,
    environments=(PROCESSOR, CARD),
    cells=(Cell(32, 16, (1.0, 2.0), (3.0, 4.0)),),
    planned=72,
    budget_seconds=10.0,
    stopped="",
    date=DATE,
)
TIMING = TimingLab(
    device="cuda",
    size=4096,
    readings=tuple(Reading(way, (9.0, 1.0, 2.0, 3.0)) for way in WAYS),
    queueing=(7.0, 8.0, 9.0),
    threads=(
        ThreadReading(32, 1, (0.1, 0.2, 0.3)),
        ThreadReading(32, 2, (0.4, 0.5, 0.6)),
    ),
    environment=CARD,
    cpu_environment=PROCESSOR,
    date=DATE,
)
QUEUE = QueueLab(
    size=4096,
    alone=Timeline(
        tuple(Call(0.1 * n, 0.1 * n + 0.05, 0.1 * n + 0.05, 2.0 + n) for n in range(8)),
        waited=9.5,
    ),
    fetched=Timeline(
        tuple(Call(n, n + 0.1, n + 0.9, n + 0.8) for n in range(8)), waited=8.0
    ),
    environment=CARD,
    date=DATE,
)
PROFILE = StepProfile(
    feed="memory",
    parts={part: (0.1, 0.2, 0.3, 0.4) for part in PARTS},
    step=(0.5, 1.0, 1.5, 2.0),
    unprofiled=(0.4, 0.9, 1.4, 1.9),
    config=RunConfig(),
    environment=CARD,
    date=DATE,
)


# What the ladder finds, without an accelerator and without a compiler

EPOCHS = {  # seconds of one, and of the rung that it changes
    "textbook": (4.0, "", 0.0),
    "two_workers": (8.0, "textbook", 4.0),
    "four_workers": (8.0, "textbook", 4.0),
    "decoded_once": (1.0, "textbook", 4.0),
    "no_waiting": (1.0, "decoded_once", 1.0),
    "fused": (0.8, "no_waiting", 1.0),
    "larger_batch": (0.4, "fused", 0.8),
    "half_precision": (0.3, "larger_batch", 0.4),
}


def rung_result(rung: Rung) -> Result:
    """Three epochs of a rung, or why it has none."""
    if rung.name not in EPOCHS:
        message = rung.obstacle("CPU", "ann")
        if message:
            return Result(rung.name, "", message=message)
        missing = "There is no compiler."
        return Result(rung.name, "half_precision", message=missing)
    seconds, base, before = EPOCHS[rung.name]
    return Result(
        rung=rung.name,
        base=base,
        seconds=(seconds,) * 3,
        base_seconds=(before,) * 3 if base else (),
        samples=12_000,
        steps=188,
        start_seconds=0.1,
        peak_bytes=2_000_000,
        correct=860,
        total=1000,
        kept="workers" not in rung.name,
    )


LIMIT = Roofline(
    flops_per_image=5e5,
    bytes_per_image=792.0,
    bytes_per_step=4e6,
    flops_per_second={"float32": (1e11, 1e11)},
    bytes_per_second=(2e10,),
    state_bytes_per_second=(8e10,),
)
CLIMBED = Climbed(
    Climb("sprites", "ann", "cpu", epochs=3, images=60_000),
    LIMIT,
    tuple(map(rung_result, RUNGS)),
    Direct("half_precision", (0.3, 0.3, 0.3), (4.0, 3.9, 4.2), (LIMIT,) * 3),
    PROCESSOR,
    DATE,
)


CLIMBED_ON_CPU = replace(
    CLIMBED,
    counts=(
        Counts("textbook", 48, 32, 3_219_456, 520),
        Counts("no_waiting", 0, 0, 0, 538),
    ),
)

# What the labs of Speed measure

CELLS = tuple(
    LoaderCell(batch, workers, pinned, 0.1, 1024, (rate, rate * 1.1, rate * 0.9))
    for batch in (64, 256)
    for workers, rate in ((0, 0.04), (2, 0.02))
    for pinned in (False, True)
)
LOADER = LoaderLab(
    plan=LoaderPlan((64, 256), (0, 2, 4), (False, True)),
    cells=CELLS,
    direct=tuple(cell for cell in CELLS if cell.batch_size == 64 and not cell.pinned),
    failures=("4 workers at batch size 64 failed: no room.",),
    task="sprites",
    cores=2,
    budget_seconds=10.0,
    environment=CARD,
    date=DATE,
)
MEMORY = MemoryLab(
    costs=tuple(
        MemoryCost(kind, name, (0.1, 0.11, 0.12), megabytes * 10**6, difference, 0.1)
        for kind, name, megabytes, difference in (
            ("training", STEP, 40, 0.0),
            ("training", CHECKPOINTED, 20, 0.0),
            ("training", ACCUMULATED, 15, 1e-8),
            ("inference", "gradients", 35, 0.0),
            ("inference", "no_grad", 6, 0.0),
            ("inference", "inference_mode", 6, 0.0),
        )
    ),
    batch_size=2048,
    parts=4,
    width=256,
    layers=16,
    environment=CARD,
    date=DATE,
)
MEMORY_ON_CPU = replace(
    MEMORY,
    environment=PROCESSOR,
    cards=(
        Card(
            bytes=64 * 2**20,
            fits={STEP: 2048, CHECKPOINTED: 4096},
            activations={STEP: 2**25, CHECKPOINTED: 2**23},
            message="SIM out of memory. Tried to allocate 4.00 MiB.",
        ),
    ),
)
ON_CARD = "torch on CUDA"
VECTORIZED = VectorizeLab(
    found=tuple(
        Vectorized(way, points, (seconds, seconds * 1.1), 1e-7, "cpu")
        for points, times in (
            (1, {PYTHON: 1e-6, NUMPY: 3e-6, TORCH: 9e-6, ON_CARD: 4e-5}),
            (100_000, {PYTHON: 0.2, NUMPY: 0.02, TORCH: 8e-3, ON_CARD: 1e-4}),
        )
        for way, seconds in times.items()
    ),
    means=10,
    environments={
        PYTHON: CARD,
        NUMPY: NumpyEnvironment(**asdict(CARD), numpy="2"),
        TORCH: CARD,
        ON_CARD: CARD,
    },
    date=DATE,
)
ACCURACIES = TimeToAccuracy(
    tests=tuple(
        Tested(way, epoch, pace * epoch, accuracy + 0.02 * epoch)
        for way, pace, accuracy in (
            ("textbook", 20.0, 0.86),
            ("schedule", 11.0, 0.87),
            ("half", 7.0, 0.87),
            ("smoothing", 7.0, 0.88),
            ("whiten", 7.0, 0.88),
            ("mirror", 7.25, 0.885),
        )
        for epoch in (1, 2)
    ),
    task="fashion-mnist",
    environment=CARD,
    date=DATE,
)
COPIES = CopiesLab(
    copied=tuple(
        Copied(n, 2**24, (1e-3 * n**0.5, 1.1e-3 * n**0.5)) for n in (1, 100, 10_000)
    ),
    fetched=tuple(
        Fetched(way, 500, (seconds, seconds))
        for way, seconds in ((ITEM, 0.1), (CPU, 0.1), (ONCE, 1))
    ),
    environment=CARD,
    date=DATE,
)
COPIES_ON_CPU = replace(
    COPIES,
    environment=PROCESSOR,
    waited=(Waited("pageable", 100, 100), Waited("pinned", 0, 100)),
)
TRANSFERS = Transfers(
    tuple(
        Transfer("host to device", memory, size, (1e-3, 1.1e-3, 1.2e-3))
        for memory in ("pageable", "pinned")
        for size in (4096, 4 * 2**20)
    ),
    CARD,
)

GRADIENTS = Gradients(
    classes=("Trouser", "Bag"),
    shares=tuple(
        Share(own, (0.2, -0.1), (0.2, -0.1), 0.4, 3e-8, by_ddp=0.0, all="a1")
        for own in ((0.1, -0.2), (0.3, 0.0))
    ),
    images=32,
    backend="gloo",
    environment=replace(PROCESSOR, threads=1),
    date=DATE,
)
COST = Cost(
    model="ann",
    batch_size=64,
    steps=(
        Step(1, 1, (0.0012,) * 5),
        Step(1, 2, (0.0009,) * 5),
        Step(2, 1, (0.001,) * 5, (0.0006,) * 5),
        Step(4, 1, (0.0024,) * 5, (0.0012,) * 5),
    ),
    cores=2,
    backend="gloo",
    environment=replace(PROCESSOR, threads=1),
    date=DATE,
)


def _turns(seconds: float) -> tuple[float, ...]:
    return tuple(seconds * (1 + 0.01 * round) for round in range(7))


BROWSER_GPU = BrowserGpu(
    name="nvidia ampere",
    kind="computer",
    works=(
        *(
            Work("product", n, _turns(8e-5 + n**3 / 4e11), _turns(n**3 / 3e10))
            for n in SIZES
        ),
        *(
            Work("forward", n, _turns(1e-4 + n * 2e-7), _turns(4e-6 * n + 3e-5))
            for n in BATCH_SIZES
        ),
        Work("step", 64, _turns(6e-4), _turns(1.1e-3)),
    ),
    left_out=(),
    losses=tuple(0.6 + 1.7 * 0.96**step for step in range(100)),
    clocked=2048,
    unwaited=_turns(3e-5),
    waited=_turns(0.022),
    there=_turns(0.011),
    back=_turns(0.0009),
    paces=(*(46.0,) * 4, 92.0, *(41.0,) * 5, *(38.0,) * 5),  # one second is too fast
    against="torch",
    expected=tuple(0.6 + 1.7 * 0.96**step for step in range(100)),
    own_weights=True,
    date=DATE,
    environment=PROCESSOR,
)
