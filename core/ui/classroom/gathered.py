"""What everybody in a class looks at, gathered once for all of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.classroom.board import Best, bests, ranking
from core.jobs.engine import PAUSED
from core.jobs.job import Job
from core.store.classes import Class
from core.ui import course, dataset, format, runs
from core.ui.classroom import guesses
from core.ui.kept import KeptAnswer
from core.ui.people import people
from core.ui.server import engine, room, store

FRESH_SECONDS = 2.0


@dataclass(frozen=True)
class Waiting:
    """A job that trains, or waits to."""

    visitor: str
    what: str  # "ANN on Sprites", "Compare"
    place: int  # in the queue; 0: it has a worker
    share: float | None  # of it that is done, where that is known


@dataclass(frozen=True)
class Gathered:
    """The class that is open, as it stood a moment ago."""

    opened: Class | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # by visitor
    here: frozenset[str] = frozenset()  # visitors with a page open
    task: str = ""  # of the quest
    best: tuple[Best, ...] = ()
    order: tuple[Best, ...] = ()  # who has reached the target, the fastest first
    newest: str = ""  # the run on images that finished last
    queue: tuple[Waiting, ...] = ()  # what runs, then what waits, in its order
    guesses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _gather() -> Gathered:
    opened = room().open
    if opened is None:
        return Gathered()
    names = {each.visitor: each.name for each in room().members()}
    rules = opened.rules
    kept = store().runs.find(class_id=opened.id, address=runs.RUN, withheld=False)
    best = bests(kept, names, rules.target)
    task = rules.settings.get("task") or dataset.default_task(engine().machine())
    return Gathered(
        opened,
        names,
        frozenset(people().who() & names.keys()),
        task,
        tuple(best),
        tuple(ranking(best, task, rules.target)),
        next((each.id for each in kept if each.accuracy is not None), ""),
        tuple(_queue()),
        store().answers.of_class(opened.id, guesses.KEYS),
    )


def _queue() -> list[Waiting]:
    jobs = [job for job in engine().going_on() if job.lane == PAUSED and job.owner]
    return [
        Waiting(job.owner, what(job), job.place, _share(job))
        for job in sorted(jobs, key=lambda job: job.place)
    ]


def what(job: Job) -> str:
    if job.address == runs.RUN:
        config = job.arguments[0]
        return f"{format.NAMES[config.model]} on {format.NAMES[config.task]}"
    lesson = course.of_address(job.address)
    return lesson.title if lesson else "a measurement"


def _share(job: Job) -> float | None:
    running = job.address == runs.RUN and job.status == "running"
    return runs.view(job).share if running else None


_newest = KeptAnswer(_gather, FRESH_SECONDS)


def now() -> Gathered:
    """As fresh as a look every few seconds needs. Raises StoreError at the first."""
    opened, found = room().open, _newest()
    if opened and (found.opened is None or found.opened.id != opened.id):
        _newest.clear()
        found = _newest()
    return found


def clear() -> None:
    """Gather anew at the next look."""
    _newest.clear()
