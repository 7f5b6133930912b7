"""The addresses that stood for the names of core.registry before revision 0010.

Older databases have them, and so do records of other machines, core/reference/*.json,
since other programs read these. An address here is what was written then: it stays the
same when a module or a class moves.
"""

from core import registry
from core.store import codec

CLASSES = {
    "core.lessons.compare.your_gpu_result:BrowserGpu": "browser_gpu",
    "core.lessons.compare.candidates:Candidate": "candidate",
    "core.jobs.job:Stored": "checkpoint",
    "core.lessons.speed.copies_result:CopiesLab": "copies",
    "core.lessons.scale.scale_result:Cost": "cost",
    "core.lessons.scale.scale_result:ParallelRun": "data_parallel",
    "core.lessons.compare.device_queue_result:QueueLab": "device_queue",
    "core.measure.environment:Environment": "environment",
    "core.results:Epoch": "epoch",
    "core.lessons.evaluate.evaluate_result:Evaluation": "evaluation",
    "core.lessons.mistakes.catalogue:Failure": "failure",
    "core.results:Fit": "fit",
    "core.lessons.scale.scale_result:Gradients": "gradients",
    "core.lessons.speed.climb_result:Climbed": "ladder",
    "core.lessons.speed.climb_result:Climb": "ladder_settings",
    "core.lessons.speed.loader_result:LoaderLab": "loader",
    "core.lessons.speed.loader_result:LoaderPlan": "loader_plan",
    "core.lessons.compare.crossover_result:Crossover": "map",
    "core.lessons.speed.memory_result:MemoryLab": "memory",
    "core.lessons.mistakes.catalogue:MistakeRun": "mistake",
    "core.lessons.evaluate.evaluate_result:ModeCost": "mode",
    "core.lessons.model.model_result:MoveTime": "model_move",
    "core.lessons.device.parallel_result:Multiplications": "multiplication",
    "core.lessons.speed.vectorize_result:NumpyEnvironment": "numpy_environment",
    "core.lessons.evaluate.evaluate_result:PrecisionCost": "precision",
    "core.lessons.compare.step_profile_result:StepProfile": "profile",
    "core.lessons.compare.race_result:Race": "race",
    "core.lessons.checkpoints.checkpoints_result:Resumed": "resume",
    "core.lessons.checkpoints.checkpoints_result:RoundTrip": "round_trip",
    "core.classroom.rules:Rules": "rules",
    "core.results:RunResult": "run",
    "core.lessons.speed.climb_result:Result": "rung",
    "core.config:RunConfig": "settings",
    "core.results:Started": "started",
    "core.lessons.speed.time_to_accuracy_result:TimeToAccuracy": "time_to_accuracy",
    "core.lessons.compare.timing_pitfalls_result:TimingLab": "timing",
    "core.lessons.model.model_result:Transfers": "transfers",
    "core.lessons.speed.vectorize_result:VectorizeLab": "vectorization",
}
JOBS = {
    "core.lessons.compare.your_gpu:prepare": "browser_gpu",
    "core.lessons.speed.copies:measure": "copies",
    "core.lessons.scale.cost:measure": "cost",
    "core.lessons.scale.data_parallel:run": "data_parallel",
    "core.lessons.compare.device_queue:measure": "device_queue",
    "core.data.fashion_mnist:download": "download",
    "core.lessons.evaluate.evaluation:evaluate": "evaluation",
    "core.lessons.scale.gradients:measure": "gradients",
    "core.lessons.speed.climb:climb": "ladder",
    "core.lessons.speed.loader:measure": "loader",
    "core.lessons.compare.crossover:measure": "map",
    "core.lessons.speed.memory:measure": "memory",
    "core.lessons.mistakes.runner:run": "mistake",
    "core.lessons.mistakes.runner:failures": "mistakes",
    "core.lessons.model.model_to:time_move": "model_move",
    "core.lessons.evaluate.evaluation:compare_modes": "modes",
    "core.lessons.device.parallel:measure": "multiplication",
    "core.lessons.evaluate.precision:compare": "precisions",
    "core.lessons.compare.step_profile:measure": "profile",
    "core.lessons.compare.race:race": "race",
    "core.lessons.checkpoints.resume:compare": "resume",
    "core.lessons.checkpoints.round_trip:measure": "round_trip",
    "core.training:run": "run",
    "core.lessons.speed.time_to_accuracy:measure": "time_to_accuracy",
    "core.lessons.compare.timing_pitfalls:measure": "timing",
    "core.lessons.model.transfers:measure": "transfers",
    "core.lessons.speed.vectorize:measure": "vectorization",
}
_ADDRESSES = {name: address for address, name in CLASSES.items()}


def class_name(address: str) -> str:
    return CLASSES.get(address, address)


def job_name(address: str) -> str:
    return JOBS.get(address, address)


def today(address: str) -> str:
    """Where the function at an address of then is now."""
    return registry.address_of_job(job_name(address))


def with_addresses(text: str) -> str:
    """A text of codec.dumps with the addresses of then instead of names."""
    return codec.retagged(text, lambda name: _ADDRESSES.get(name, name))


def with_names(text: str) -> str:
    """A text of codec.dumps with names instead of addresses. Raises ValueError."""
    return codec.retagged(text, class_name)
