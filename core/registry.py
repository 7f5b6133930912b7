"""The names by which the database knows the app's classes and jobs.

A row has a name, never a module's path. So a module, a class, or a function may get
another name or place: then only its entry here changes, and no row. The names
themselves stay as they are, since rows have them.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)

# From the name of a class to the module that has the class. A module is imported when a
# row with the name is read: only then does a process need the class. What jobs report
# while they run is stored as well as their results.
CLASSES = {
    "accuracy_test": "core.lessons.speed.time_to_accuracy_result",
    "browser_gpu": "core.lessons.compare.your_gpu_result",
    "candidate": "core.lessons.compare.candidates",
    "candidate_failure": "core.lessons.compare.race_result",
    "checkpoint": "core.jobs.job",
    "copies": "core.lessons.speed.copies_result",
    "cost": "core.lessons.scale.scale_result",
    "data_parallel": "core.lessons.scale.scale_result",
    "device_queue": "core.lessons.compare.device_queue_result",
    "download": "core.data.fashion_mnist",
    "environment": "core.measure.environment",
    "epoch": "core.results",
    "evaluation": "core.lessons.evaluate.evaluate_result",
    "failure": "core.lessons.mistakes.catalogue",
    "fit": "core.results",
    "gradients": "core.lessons.scale.scale_result",
    "ladder": "core.lessons.speed.climb_result",
    "ladder_counts": "core.lessons.speed.climb_result",
    "ladder_progress": "core.lessons.speed.climb_result",
    "ladder_settings": "core.lessons.speed.climb_result",
    "loader": "core.lessons.speed.loader_result",
    "loader_cell": "core.lessons.speed.loader_result",
    "loader_plan": "core.lessons.speed.loader_result",
    "map": "core.lessons.compare.crossover_result",
    "map_cell": "core.lessons.compare.crossover_result",
    "memory": "core.lessons.speed.memory_result",
    "memory_cost": "core.lessons.speed.memory_result",
    "mistake": "core.lessons.mistakes.catalogue",
    "mode": "core.lessons.evaluate.evaluate_result",
    "model_move": "core.lessons.model.model_result",
    "multiplication": "core.lessons.device.parallel_result",
    "multiplied": "core.lessons.device.parallel_result",
    "numpy_environment": "core.lessons.speed.vectorize_result",
    "pace": "core.measure.pace_result",
    "part_losses": "core.lessons.checkpoints.checkpoints_result",
    "picked_up": "core.jobs.job",
    "precision": "core.lessons.evaluate.evaluate_result",
    "profile": "core.lessons.compare.step_profile_result",
    "race": "core.lessons.compare.race_result",
    "rank_loss": "core.lessons.scale.scale_result",
    "repeat": "core.lessons.scale.scale_result",
    "resume": "core.lessons.checkpoints.checkpoints_result",
    "roofline": "core.lessons.speed.climb_result",
    "round_trip": "core.lessons.checkpoints.checkpoints_result",
    "rules": "core.classroom.rules",
    "run": "core.results",
    "rung": "core.lessons.speed.climb_result",
    "settings": "core.config",
    "started": "core.results",
    "time_to_accuracy": "core.lessons.speed.time_to_accuracy_result",
    "timing": "core.lessons.compare.timing_pitfalls_result",
    "timing_reading": "core.lessons.compare.timing_pitfalls_result",
    "transfer": "core.lessons.model.model_result",
    "transfers": "core.lessons.model.model_result",
    "trial": "core.lessons.compare.race_result",
    "trial_progress": "core.lessons.compare.race_result",
    "vectorization": "core.lessons.speed.vectorize_result",
    "vectorized": "core.lessons.speed.vectorize_result",
}

# From the name of a job to the address of the function that a worker calls. A
# measurement has the name of the job that made it.
JOBS = {
    "browser_gpu": "core.lessons.compare.your_gpu:prepare",
    "copies": "core.lessons.speed.copies:measure",
    "cost": "core.lessons.scale.cost:measure",
    "data_parallel": "core.lessons.scale.data_parallel:run",
    "device_queue": "core.lessons.compare.device_queue:measure",
    "download": "core.data.fashion_mnist:download",
    "evaluation": "core.lessons.evaluate.evaluation:evaluate",
    "gradients": "core.lessons.scale.gradients:measure",
    "ladder": "core.lessons.speed.climb:climb",
    "loader": "core.lessons.speed.loader:measure",
    "map": "core.lessons.compare.crossover:measure",
    "memory": "core.lessons.speed.memory:measure",
    "mistake": "core.lessons.mistakes.runner:run",
    "mistakes": "core.lessons.mistakes.runner:failures",
    "model_move": "core.lessons.model.model_to:time_move",
    "modes": "core.lessons.evaluate.evaluation:compare_modes",
    "multiplication": "core.lessons.device.parallel:measure",
    "pace": "core.pace:measure",
    "precisions": "core.lessons.evaluate.precision:compare",
    "profile": "core.lessons.compare.step_profile:measure",
    "race": "core.lessons.compare.race:race",
    "resume": "core.lessons.checkpoints.resume:compare",
    "round_trip": "core.lessons.checkpoints.round_trip:measure",
    "run": "core.training:run",
    "time_to_accuracy": "core.lessons.speed.time_to_accuracy:measure",
    "timing": "core.lessons.compare.timing_pitfalls:measure",
    "transfers": "core.lessons.model.transfers:measure",
    "vectorization": "core.lessons.speed.vectorize:measure",
}
RUN = JOBS["run"]  # the function that training runs call
PACE = JOBS["pace"]  # times some steps of each recipe

_names: dict[type, str] = {}


def stored(name: str) -> Callable[[Kind], Kind]:
    """Mark a dataclass whose objects are stored, under this name in CLASSES.

    Stored objects outlast the code: a new field needs a default.
    """

    def register(kind: Kind) -> Kind:
        _names[kind] = name
        return kind

    return register


def name_of_class(kind: type) -> str:
    """The stored name. Raises TypeError for a class that isn't marked as stored."""
    try:
        return _names[kind]
    except KeyError:
        raise TypeError(f"{kind.__module__}:{kind.__qualname__} isn't stored") from None


def class_of(name: str) -> type:
    """The class with a stored name. Raises LookupError if there is none."""
    for kind in vars(import_module(CLASSES[name])).values():
        if isinstance(kind, type) and _names.get(kind) == name:
            return kind
    raise LookupError(f"{CLASSES[name]} has no class with the stored name {name}")


def name_of_job(address: str) -> str:
    """The stored name of the job that calls the function at an address.

    Jobs of other programs, whose functions aren't the app's, are stored with their
    address. Raises LookupError for a function of the app that isn't in JOBS.
    """
    for name, known in JOBS.items():
        if known == address:
            return name
    if address.startswith("core."):
        raise LookupError(f"{address} isn't in core.registry.JOBS")
    return address


def address_of_job(name: str) -> str:
    """The address to call; the name itself if it isn't the name of a job."""
    return JOBS.get(name, name)
