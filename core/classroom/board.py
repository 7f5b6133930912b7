"""What a class has reached: everybody's best, my place among them, and who is stuck."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.store.classes import Member
from core.store.results import RunSummary


@dataclass(frozen=True)
class Best:
    """The best run of somebody on a task."""

    visitor: str
    name: str
    run_id: str
    task: str
    device: str | None  # its product name
    accuracy: float  # on the test set, 0 to 1
    seconds: float


def bests(
    runs: Iterable[RunSummary], names: Mapping[str, str], target: float
) -> list[Best]:
    """One of each person and task on images: the fastest at the target, if one is.

    Else the most accurate. `names` are those of the class, by visitor.
    """
    found: dict[tuple[str, str], Best] = {}
    for run in runs:
        task, who = run.task, run.visitor or ""
        accuracy, seconds = run.accuracy, run.seconds
        if task is None or accuracy is None or seconds is None or who not in names:
            continue
        this = Best(who, names[who], run.id, task, run.device_name, accuracy, seconds)
        key = who, task
        if key not in found or _worth(this, target) > _worth(found[key], target):
            found[key] = this
    return list(found.values())


def _worth(run: Best, target: float) -> tuple[bool, float]:
    reached = run.accuracy >= target
    return reached, -run.seconds if reached else run.accuracy


def ranking(found: Iterable[Best], task: str, target: float) -> list[Best]:
    """Those who have reached the target on a task, the fastest first."""
    there = (each for each in found if each.task == task and each.accuracy >= target)
    return sorted(there, key=lambda each: each.seconds)


def neighbors(order: Sequence[Best], visitor: str) -> list[tuple[int, Best]]:
    """The first, the visitor, and who is next to them, each with their place.

    Of whoever has no place yet, the first three.
    """
    mine = next((i for i, each in enumerate(order) if each.visitor == visitor), None)
    around = range(3) if mine is None else (0, mine - 1, mine, mine + 1)
    places = sorted({place for place in around if 0 <= place < len(order)})
    return [(place + 1, order[place]) for place in places]


@dataclass(frozen=True)
class Stuck:
    """Somebody who may need help."""

    member: Member
    why: str  # a sentence


def stuck(
    members: Iterable[Member], runs: Sequence[RunSummary], busy: Collection[str] = ()
) -> list[Stuck]:
    """Who has begun no run yet, or whose last one failed; `busy` are those who train.

    The runs are those of the class, the newest first.
    """
    last: dict[str | None, RunSummary] = {}
    for run in runs:
        last.setdefault(run.visitor, run)
    found = []
    for member in members:
        newest = last.get(member.visitor)
        if member.visitor in busy:
            continue
        if newest is None:
            found.append(Stuck(member, "No run yet."))
        elif newest.status in ("failed", "interrupted"):
            why = f"The last run {newest.status}: {newest.message}"
            found.append(Stuck(member, why))
    return found
