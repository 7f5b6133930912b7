"""Standings of the open class, gathered once for all who look: bests, places, queue."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.classroom import guesses_page as guesses
from core.errors import ExplainedError
from core.jobs.engine import PAUSED
from core.jobs.job import Job
from core.store.tables import Class, Member, RunSummary
from core.ui import course, dataset, format, runs
from core.ui.server import KeptAnswer, engine, here, room, store
from core.words import Words

FRESH_SECONDS = 2.0
words = Words(__file__)


@dataclass(frozen=True)
class Best:
    """A person's best run on a task."""

    visitor: str
    name: str
    run_id: str
    task: str
    device: str | None  # its product name
    accuracy: float  # on the test set, 0 to 1
    seconds: float

    def worth(self, target: float) -> tuple[bool, float]:
        """Greater for a better run: at the target the fastest, below the most exact."""
        reached = self.accuracy >= target
        return reached, -self.seconds if reached else self.accuracy


@dataclass(frozen=True)
class Standings:
    """The open class as it stood a moment ago."""

    opened: Class
    names: Mapping[str, str]  # names of the members, by visitor
    here: frozenset[str]  # members with a page open
    task: str  # task set by the quest
    best: list[Best]
    order: list[Best]  # those at the target, the fastest first
    newest: str  # id of the run on images that finished last; empty: none
    queue: list[Job]  # running, then waiting in their order
    guesses: Mapping[str, Mapping[str, Any]]  # by question, then by visitor


def bests(
    runs: Iterable[RunSummary], names: Mapping[str, str], target: float
) -> list[Best]:
    """One run of each member and task on images; `names` are the members', by visitor.

    The fastest at the target; without one, the most accurate.
    """
    best: dict[tuple[str, str], Best] = {}
    for run in runs:
        task, who = run.task, run.visitor or ""
        accuracy, seconds = run.accuracy, run.seconds
        if run.changes:  # by hand: the others couldn't do the same
            continue
        if task is None or accuracy is None or seconds is None or who not in names:
            continue
        new = Best(who, names[who], run.id, task, run.device_name, accuracy, seconds)
        best[who, task] = max(
            best.get((who, task), new), new, key=lambda run: run.worth(target)
        )
    return list(best.values())


def ranking(best: Iterable[Best], task: str, target: float) -> list[Best]:
    """Runs on a task that have reached the target, the fastest first."""
    reached = (run for run in best if run.task == task and run.accuracy >= target)
    return sorted(reached, key=lambda run: run.seconds)


def neighbors(order: Sequence[Best], visitor: str) -> list[tuple[int, Best]]:
    """The first, the visitor and their neighbors, with places from 1.

    A visitor without a place gets the first three.
    """
    mine = next((i for i, run in enumerate(order) if run.visitor == visitor), None)
    around = range(3) if mine is None else (0, mine - 1, mine, mine + 1)
    return [(i + 1, order[i]) for i in sorted({*around}) if 0 <= i < len(order)]


def stuck(
    members: Iterable[Member], runs: Iterable[RunSummary], busy: Collection[str] = ()
) -> dict[Member, str]:
    """Members without a run, or whose last one failed, with a sentence that says so.

    `runs` are the class's, the newest first; visitors in `busy` train right now.
    """
    last: dict[str | None, RunSummary] = {}
    for run in runs:
        last.setdefault(run.visitor, run)
    why = {}
    for member in members:
        newest_run = last.get(member.visitor)
        if member.visitor in busy:
            continue
        if newest_run is None:
            why[member] = "No run yet."
        elif newest_run.status in ("failed", "interrupted"):
            why[member] = f"The last run {newest_run.status}: {newest_run.message}"
    return why


def queue() -> list[Job]:
    """Jobs that train, then those that wait to, in the queue's order."""
    jobs = (job for job in engine().going_on() if job.lane == PAUSED)
    return sorted(jobs, key=lambda job: job.place)


def label(job: Job) -> str:
    """What a job does: "ANN on Sprites", "Compare"."""
    if job.address == runs.RUN:
        config = job.arguments[0]
        return f"{format.NAMES[config.model]} on {format.NAMES[config.task]}"
    lesson = course.of_address(job.address)
    return lesson.title if lesson else "a measurement"


def _gather() -> Standings:
    opened = room().open
    if opened is None:
        raise ExplainedError(words("room.closed"))
    names = {member.visitor: member.name for member in room().members()}
    rules = opened.rules
    summaries = store().runs.find(class_id=opened.id, address=runs.RUN, withheld=False)
    best = bests(summaries, names, rules.target)
    task = rules.settings.get("task") or dataset.default_task(engine().machine())
    evaluated = (run.id for run in summaries if run.accuracy and not run.is_simulated)
    return Standings(
        opened,
        names,
        here=frozenset(here() & names.keys()),
        task=task,
        best=best,
        order=ranking(best, task, rules.target),
        newest=next(evaluated, ""),
        queue=[job for job in queue() if job.owner],
        guesses=store().answers.of_class(opened.id, guesses.KEYS),
    )


_newest = KeptAnswer(_gather, FRESH_SECONDS)
clear = _newest.clear


def newest() -> Standings:
    """Raises ExplainedError where they can't be read, or no class is open."""
    opened, standings = room().open, _newest()
    if opened and standings.opened.id != opened.id:
        clear()
        standings = _newest()
    return standings
