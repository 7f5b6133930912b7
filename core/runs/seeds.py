"""How much the seed alone changes an accuracy, from runs that differ in nothing else.

The class's board and the pages that compare runs both judge differences by this.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from core.registry import RUN
from core.runs import listing
from core.store.codec import StoreError
from core.store.tables import SETTINGS, RunSummary
from core.ui import runs
from core.ui.server import room, store, visitor

LEAST = 3  # the fewest seeds of a setting that show what seeds change
LATEST = 500  # as many of a class's or a person's runs are looked at
NAMED = ("model", "batch_size", "epochs")


@dataclass(frozen=True)
class Spread:
    """The accuracies that one setting reached with different seeds."""

    setting: str  # in words
    seeds: int
    least: float
    most: float

    @property
    def difference(self) -> float:
        return round(self.most - self.least, 4)

    @property
    def points(self) -> str:
        return f"{100 * self.difference:.2f}"


def setting(run: RunSummary) -> tuple[Any, ...]:
    """What two runs have in common that differ by chance alone."""
    same = (getattr(run, name) for name in SETTINGS if name != "seed")
    return run.device_name, *same


def spreads(found: Iterable[RunSummary]) -> dict[tuple[Any, ...], Spread]:
    """By `setting`, the spread of each that ran with LEAST seeds or more.

    The setting with the most seeds comes first.
    """
    by_setting: dict[tuple[Any, ...], dict[int, RunSummary]] = {}
    for run in found:
        is_whole = run.status == "finished" and run.accuracy is not None
        if is_whole and not run.changes:
            by_setting.setdefault(setting(run), {})[run.seed] = run
    spread = {}
    for key in sorted(by_setting, key=lambda key: -len(by_setting[key])):
        like = [*by_setting[key].values()]
        if len(like) >= LEAST:
            least, *_, most = sorted(round(run.accuracy or 0.0, 4) for run in like)
            name = ", ".join(listing.setting(like[0], field) for field in NAMED)
            spread[key] = Spread(name, len(like), least, most)
    return spread


def known(task: str) -> list[RunSummary]:
    """The runs that tell it to this visitor: the class's, or else their own."""
    equal: dict[str, Any] = {"task": task, "status": "finished"}
    who, classroom = visitor(), room().board_for(visitor())
    if classroom is None or runs.are_hidden():
        return runs.stored_runs(who, limit=LATEST, **equal)
    equal |= {"class_id": classroom.id, "withheld": False}
    try:
        return store().runs.find(address=RUN, limit=LATEST, **equal)
    except StoreError:
        return []
