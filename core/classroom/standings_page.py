"""The class's standings on the board, gathered once for everybody who looks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.classroom import guesses_page as guesses
from core.classroom.rules import Rules
from core.errors import ExplainedError
from core.jobs.engine import PAUSED
from core.jobs.job import Job
from core.runs import listing
from core.store.tables import SETTINGS, Class, Member, RunSummary
from core.ui import course, dataset, format, runs
from core.ui.server import KeptAnswer, engine, open_pages, room, store
from core.words import Words

FRESH_SECONDS = 2.0
LEAST_SEEDS = 3  # needed to tell how much is luck
words = Words(__file__)


@dataclass(frozen=True)
class Best:
    visitor: str
    name: str
    run_id: str
    task: str
    device: str | None  # its product name
    accuracy: float  # on the test set, 0 to 1
    seconds: float
    steps: int
    number: int  # order of arrival

    def reached(self, rules: Rules) -> bool:
        """Whether the run has a place in the quest."""
        most, least = rules.limits
        return self.seconds <= (most or self.seconds) and self.accuracy >= (least or 0)

    def worth(self, rules: Rules) -> tuple[bool, float, int]:
        """Greater for a better run, and for the earlier of two equal runs."""
        reached, cost = self.reached(rules), getattr(self, rules.cost)
        by_accuracy = reached == (rules.quest == "accuracy")
        return reached, self.accuracy if by_accuracy else -cost, -self.number

    def score(self, rules: Rules) -> str:
        """Text such as "88.1% in 590 steps" or "88.1% in 2.4 s"."""
        steps = format.counted(self.steps, "step")
        cost = steps if rules.cost == "steps" else f"{self.seconds:.1f} s"
        return f"{self.accuracy:.1%} in {cost}"


@dataclass(frozen=True)
class Standings:
    """The class on the board as it stood a moment ago."""

    opened: Class  # or closed by now
    names: Mapping[str, str]  # names of the members, by visitor
    here: frozenset[str]  # members with a page open
    task: str  # task set by the quest
    best: list[Best]  # the best of them first
    order: list[Best]  # those with a place in the quest, the best first
    hidden: frozenset[str]  # visitors with a run that a teacher has hidden
    luck: str  # how far apart runs are by their seeds alone
    newest: str  # id of the run on images that finished last; empty: none
    queue: list[Job]  # running, then waiting in their order
    guesses: Mapping[str, Mapping[str, Any]]  # by question, then by visitor

    def place(self, run: Best) -> int:
        """From 1; equally good runs share a place, whichever was first in the queue."""
        rules = self.opened.rules
        worth = run.worth(rules)[:2]
        return 1 + sum(each.worth(rules)[:2] > worth for each in self.order)

    def tied(self, run: Best) -> int:
        """How many runs share the run's place, with the run itself."""
        rules = self.opened.rules
        worth = run.worth(rules)[:2]
        return sum(each.worth(rules)[:2] == worth for each in self.order)


def bests(
    runs: Iterable[RunSummary], names: Mapping[str, str], rules: Rules
) -> list[Best]:
    """Each member's best run on each image task, the best of all first.

    `names` has members by visitor. Runs that were steered by hand don't count.
    """
    best: dict[tuple[str, str], Best] = {}
    for run in runs:
        task, who = run.task, run.visitor or ""
        accuracy, seconds = run.accuracy, run.seconds
        if run.changes:  # steered by hand, so others can't repeat it
            continue
        if task is None or accuracy is None or seconds is None or who not in names:
            continue
        figures = run.device_name, accuracy, seconds, run.steps or 1, run.seq
        new = Best(who, names[who], run.id, task, *figures)
        before = best.get((who, task), new)
        best[who, task] = max(before, new, key=lambda run: run.worth(rules))
    return sorted(best.values(), key=lambda run: run.worth(rules), reverse=True)


def luck(runs: Iterable[RunSummary], task: str) -> str:
    """A sentence on how far apart runs are that differ only in their seeds.

    The settings with the most seeds count; "" with fewer than three seeds.
    """
    by_setting: dict[tuple[Any, ...], dict[int, RunSummary]] = {}
    for run in runs:
        is_whole = run.status == "finished" and run.accuracy is not None
        if run.task == task and is_whole and not run.changes:
            same = (getattr(run, name) for name in SETTINGS if name != "seed")
            by_setting.setdefault((run.device_name, *same), {})[run.seed] = run
    seeds = [*max(by_setting.values(), key=len, default={}).values()]
    if len(seeds) < LEAST_SEEDS:
        return ""
    least, *_, most = sorted(round(run.accuracy or 0.0, 3) for run in seeds)
    shown = ("model", "batch_size", "epochs")
    setting = ", ".join(listing.setting(seeds[0], name) for name in shown)
    points = f"{100 * (most - least):.1f}"
    figures = {"points": points, "least": f"{least:.1%}", "most": f"{most:.1%}"}
    return words("board.luck", setting=setting, seeds=len(seeds), **figures)


def neighbors(order: Sequence[Best], visitor: str) -> list[Best]:
    """The first, the visitor, and their neighbors; without a place, the first three."""
    mine = next((i for i, run in enumerate(order) if run.visitor == visitor), None)
    around = range(3) if mine is None else (0, mine - 1, mine, mine + 1)
    return [order[i] for i in sorted({*around}) if 0 <= i < len(order)]


def stuck(
    members: Sequence[Member], runs: Iterable[RunSummary], busy: Collection[str] = ()
) -> dict[Member, str]:
    """Members without a run, or whose last run failed, each with a sentence.

    `runs` are the class's, the newest first; visitors in `busy` are training now. Until
    half of the members have a run, nobody is late.
    """
    last: dict[str | None, RunSummary] = {}
    for run in runs:
        last.setdefault(run.visitor, run)
    why = {}
    for member in members:
        newest_run = last.get(member.visitor)
        if member.visitor in busy:
            continue
        if newest_run is None and 2 * len(last) >= len(members):
            why[member] = "No run yet."
        elif newest_run and newest_run.status in ("failed", "interrupted"):
            ended = format.ENDINGS[newest_run.status]
            why[member] = f"The last run {ended}: {newest_run.message}"
    return why


def queue() -> list[Job]:
    """Jobs that are training, then jobs that are waiting, in the queue's order."""
    jobs = (job for job in engine().going_on() if job.lane == PAUSED)
    return sorted(jobs, key=lambda job: job.place)


def label(job: Job) -> str:
    """Text such as "ANN on Sprites" or "Compare"."""
    if job.address == runs.RUN:
        config = job.arguments[0]
        return f"{format.NAMES[config.model]} on {format.NAMES[config.task]}"
    lesson = course.of_address(job.address)
    return lesson.title if lesson else "a measurement"


def _gather() -> Standings:
    shown = room().on_board
    if shown is None:
        raise ExplainedError(words("room.closed"))
    names = {member.visitor: member.name for member in room().members()}
    rules: Rules = shown.rules
    all_runs = store().runs.find(hidden=True, class_id=shown.id, address=runs.RUN)
    summaries = [run for run in all_runs if not (run.hidden or run.withheld)]
    best = bests(summaries, names, rules)
    task = rules.settings.get("task") or dataset.default_task(engine().machine())
    evaluated = (run.id for run in summaries if run.accuracy and not run.is_simulated)
    return Standings(
        shown,
        names,
        here=frozenset(open_pages().keys() & names.keys()),
        task=task,
        best=best,
        order=[run for run in best if run.task == task and run.reached(rules)],
        hidden=frozenset(run.visitor or "" for run in all_runs if run.withheld),
        luck=luck(summaries, task),
        newest=next(evaluated, ""),
        queue=[job for job in queue() if job.owner],
        guesses=store().answers.of_class(shown.id, guesses.KEYS),
    )


_newest = KeptAnswer(_gather, FRESH_SECONDS)
clear = _newest.clear


def newest() -> Standings:
    """Raises ExplainedError if no class is on the board, or the database is away."""
    shown, standings = room().on_board, _newest()
    if shown and shown != standings.opened:
        clear()
        standings = _newest()
    return standings
