"""The standings that the class's board shows, computed once for all its readers."""

import time
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from core.classroom import guesses_page as guesses
from core.classroom import scripts_page as scripts
from core.classroom.names import APP, OUTSIDER, TEACHER
from core.classroom.rules import Rules
from core.jobs.engine import TRAIN_LANE
from core.jobs.job import Job
from core.registry import PACE
from core.runs import seeds
from core.store.tables import Class, RunSummary
from core.ui import course, dataset, format, runs
from core.ui.server import KeptAnswer, engine, open_pages, room, store
from to_device.errors import ExplainedError
from to_device.words import Words

NEW_SECONDS = 180.0
FRESH_SECONDS = 2.0
words = Words(__file__)


@dataclass(frozen=True)
class Standings:
    """What the class's board shows; it may be a few seconds old."""

    classroom: Class  # it may be closed by now
    names: Mapping[Any, str]  # names of the members, by visitor
    here: frozenset[str]  # members with a page open
    task: str  # dataset of the quest: the rules fix it, or else the default
    best: list[RunSummary]  # see `bests`
    order: list[RunSummary]  # those of `best` that rank in the quest, the winner first
    hidden: frozenset[str]  # visitors with a run that a teacher has hidden
    luck: str  # a sentence, see `luck`
    newest: str  # see `newest_model`
    queue: list[Job]  # running jobs, then waiting jobs in their order
    guesses: guesses.Tallies
    # How far each member is, by the title of the script and then by visitor
    scripts: Mapping[str, Mapping[str, scripts.ScriptProgress]]
    stuck: Mapping[str, str]  # see `stuck`

    def place(self, run: RunSummary) -> int:
        """The run's place, from 1; equally good runs share a place."""
        worth = self.classroom.rules.worth
        return 1 + sum(worth(other) > worth(run) for other in self.order)

    def tied(self, run: RunSummary) -> int:
        """How many runs share the run's place, including the run itself."""
        worth = self.classroom.rules.worth
        return sum(worth(other) == worth(run) for other in self.order)


def bests(
    runs: Iterable[RunSummary], names: Container[str], rules: Rules
) -> list[RunSummary]:
    """Each member's best run, the best first.

    Of equally good runs, the earliest comes first. `names` contains the members'
    visitor ids. Runs that were steered by hand don't count, because others can't repeat
    them.
    """
    counted = [
        run
        for run in runs
        if run.visitor in names and not run.changes
        if run.accuracy is not None and run.seconds is not None and run.steps
    ]
    counted.sort(key=lambda run: (rules.worth(run), -run.seq), reverse=True)
    best: dict[str | None, RunSummary] = {}
    for run in counted:
        best.setdefault(run.visitor, run)
    return [*best.values()]


def luck(runs: Iterable[RunSummary], order: Sequence[RunSummary]) -> str:
    """A sentence on how much the seed alone changes a run's accuracy.

    It is about the settings of the first of the runs in `order`, those on the board, or
    if these settings were run with too few seeds, about others on the board, which it
    calls so. It is "" if all had too few.
    """
    spreads = seeds.spreads(runs)
    leading, *others = [*map(seeds.setting, order)] or [()]
    found = [key for key in spreads if key in others]
    if leading not in spreads and not found:
        return ""
    is_leading = leading in spreads
    spread = spreads[leading if is_leading else found[0]]
    whose = "the best run's settings" if is_leading else "the settings of another run"
    return (
        f"A difference of {spread.points} points can be luck: with {spread.seeds} "
        f"seeds, {whose} gave accuracies from {spread.least:.2%} to "
        f"{spread.most:.2%} ({spread.setting})."
    )


def neighbors(order: Sequence[RunSummary], visitor: str) -> list[RunSummary]:
    """The best run, the visitor's run, and the runs before and after the visitor's.

    For a visitor without a place, these are the first three runs.
    """
    mine = next((i for i, run in enumerate(order) if run.visitor == visitor), None)
    around = range(3) if mine is None else (0, mine - 1, mine, mine + 1)
    return [order[i] for i in sorted({*around}) if 0 <= i < len(order)]


def stuck(
    members: Collection[str],
    runs: Sequence[RunSummary],
    busy: Collection[str] = (),
    new: Collection[str] = (),
    refused: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Members without a run, or whose last run failed, each with a sentence on why.

    `runs` are the class's runs, the newest first. Visitors in `busy` are training now,
    so they aren't stuck. While fewer than half of the members have a run, nobody counts
    as late with the first run, and those in `new` don't in any case. `refused` says why
    the latest run that somebody wanted to start was refused.
    """
    last = {run.visitor: run for run in reversed(runs)}
    why = {}
    for who in members:
        if who in busy:
            continue
        if who in refused:
            why[who] = refused[who]
        elif who not in last:
            if 2 * len(last) >= len(members) and who not in new:
                why[who] = "No run yet."
        elif last[who].status in ("failed", "interrupted"):
            ended = format.ENDINGS[last[who].status]
            why[who] = f"The last run {ended}: {last[who].message}"
    return why


def new(class_id: str) -> set[str]:
    """Members who have only just joined, and still look around."""
    since = time.time() - NEW_SECONDS
    return {m.visitor for m in room().members(class_id) if m.joined > since}


def queue() -> list[Job]:
    """Jobs that run, then jobs that wait in the order of the queue."""
    jobs = (job for job in engine().going_on() if job.lane == TRAIN_LANE)
    return sorted(jobs, key=lambda job: job.place)


def label(job: Job) -> str:
    """Text such as "ANN on Sprites" or "Compare"."""
    if job.address == runs.RUN:
        return format.subject(job.arguments[0])
    if job.address == PACE:
        return "how fast runs are here"
    lesson = course.of_address(job.address)
    return lesson.title if lesson else "another page"


def owner(job: Job, names: Mapping[str, str]) -> str:
    """The name of a job's owner. `names` are the members' names, by visitor."""
    if not job.owner:
        return APP
    other = TEACHER if room().is_teacher(job.owner) else OUTSIDER
    return names.get(job.owner, other)


def all_runs(classroom: Class) -> list[RunSummary]:
    """All training runs of a class, even hidden ones. The newest run comes first."""
    return store().runs.find(hidden=True, address=runs.RUN, class_id=classroom.id)


def newest_model(runs: Iterable[RunSummary]) -> str:
    """The id of the first of the runs that has a tested model; "" if none has.

    A run that ended without a result leaves no model, and simulated runs don't count.
    """
    models = (
        run.id
        for run in runs
        if run.accuracy and not run.is_simulated and run.status not in format.ENDINGS
    )
    return next(models, "")


def _gather() -> Standings:
    classroom = room().on_board
    if classroom is None:
        raise ExplainedError(words("room.closed"))
    names, rules = room().names(classroom.id), classroom.rules
    class_runs = all_runs(classroom)
    task = rules.settings.get("task") or dataset.default_task(engine().machine())
    summaries = [
        run
        for run in class_runs
        if run.task == task and not (run.hidden or run.withheld)
    ]
    best = bests(summaries, names, rules)
    order = [run for run in best if rules.reached(run)]
    jobs = queue()
    return Standings(
        classroom,
        names,
        here=frozenset(open_pages().keys() & names.keys()),
        task=task,
        best=best,
        order=order,
        hidden=frozenset(run.visitor or "" for run in class_runs if run.withheld),
        luck=luck(summaries, [*order, *best]),
        newest=newest_model(summaries),
        queue=[job for job in jobs if job.owner],
        guesses=guesses.of_class(classroom.id),
        scripts=scripts.of_class(classroom),
        stuck=stuck(
            names,
            class_runs,
            {job.owner for job in jobs},
            new(classroom.id),
            room().refused(),
        ),
    )


_newest = KeptAnswer(_gather, FRESH_SECONDS)
clear = _newest.clear


def newest() -> Standings:
    """The newest standings.

    Raises ExplainedError if no class is on the board, or the database fails.
    """
    classroom, standings = room().on_board, _newest()
    if classroom and classroom != standings.classroom:
        clear()
        standings = _newest()
    return standings
