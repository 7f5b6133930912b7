"""Corrects a script: tries changes at the lines with mistakes, and keeps what helps.

No change is taken on trust. After each, the script runs again on the simulated device,
and a change stays only if its mistake is gone and the script comes as far as before.
At last, the script also runs as on a machine without a GPU. A person who repairs a
script does the same: change a line, run, look at the next error.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

from core.jobs import child_process, code
from core.script import check
from core.script.check import Checked, How
from core.script.device_edits import Fault
from core.script.edits import DEVICE_ERROR, NO_DEVICE, ON_CPU
from to_device.dryrun.report import DEVICE_ERROR as FAILS_ON_DEVICE
from to_device.dryrun.report import NEWLINE, NOT_SIMULATED, OK
from to_device.words import capitalized

HARD_CODED = "cuda_hard_coded"
MOST_RUNS = 40
SECONDS = 30.0  # after this time, no other change is tried
MOST_ADDED = 2_000  # characters that a change may add to a script of any length
MOST_CHARACTERS = 50_000  # a longer script stays: each change is a whole script

Weight = tuple[bool, int, bool, int, int]
Where = tuple[int, int, str, str, int]


@dataclass(frozen=True)
class Correction:
    text: str  # the corrected script
    checked: Checked  # what is still found in it
    runs_without: bool = False  # it ran to its end, also without a GPU
    why_not: str = ""  # why it doesn't, without one
    # What the changes mended beside what the first check had found: the line in the
    # script as it was (0: in a new line), and what was wrong there
    beside: tuple[tuple[int, str], ...] = ()
    changes: str = ""  # as a diff; also "" if comparing the scripts took too long


@dataclass(frozen=True, eq=False)
class Line:
    """A line with its end. Scripts share a line until a change replaces it."""

    text: str
    number: int  # which line of the first script it stands for; 0: it is new


@dataclass(frozen=True)
class Change:
    """The lines that a change took out of a script, and those that it put there."""

    before: list[Line]
    after: list[Line]
    line: int  # the line with the mistake, in the first script; 0 if it is new
    say: str  # what was wrong there, in Markdown


class Trial:
    """A script, the changes that led to it, what reading it finds, and how it ran."""

    def __init__(self, lines: list[Line], changes: tuple[Change, ...], how: How):
        self.lines, self.changes, self.how = lines, changes, how
        self.text = "".join(line.text for line in lines)
        self.report = {} if how == "off" else check.run(self.text, how)
        self.status = self.report.get("status")

    def changed(self, text: str, fault: Fault) -> "Trial":
        """The trial of a script that was changed to mend a fault.

        All lines between the first and the last changed one count as changed.
        """
        old, new = self.lines, lines_of(text)
        start, end = 0, 0
        shorter = min(len(old), len(new))
        while start < shorter and old[start].text == new[start]:
            start += 1
        while end < shorter - start and old[-1 - end].text == new[-1 - end]:
            end += 1
        before = old[start : len(old) - end]
        texts = new[start : len(new) - end]
        numbers = [*(line.number for line in before), *([0] * len(texts))]
        after = [Line(*pair) for pair in zip(texts, numbers, strict=False)]
        lines = [*old[:start], *after, *old[len(old) - end :]]
        change = Change(
            before, after, self.lines[fault.line - 1].number, self.say(fault)
        )
        return Trial(lines, (*self.changes, change), self.how)

    def say(self, fault: Fault) -> str:
        """What is wrong, in Markdown; "" if nothing says it."""
        at_line = [p for p in self.checked.problems if p.line == fault.line]
        said = (p.say for p in at_line if p.slug == fault.name)
        return next(said, f"{capitalized(fault.why)}." if fault.why else "")

    def without(self, change: Change) -> "Trial | None":
        """The trial without a change; None if a later one builds on it."""
        first = next(iter(change.after), None)
        if first not in self.lines:
            return None
        place = self.lines.index(first)
        end = place + len(change.after)
        if self.lines[place:end] != change.after:
            return None
        lines = [*self.lines[:place], *change.before, *self.lines[end:]]
        left = tuple(each for each in self.changes if each is not change)
        return Trial(lines, left, self.how)

    @cached_property
    def checked(self) -> Checked:
        read = check.read(self.text)
        return check.with_run(read, self.report) if self.report else read

    @property
    def runs(self) -> bool:
        """Whether it ran to its end, or to an error of a device."""
        return self.status in (OK, FAILS_ON_DEVICE)

    @property
    def failure(self) -> dict[str, Any] | None:
        return self.report["failure"] if self.status == FAILS_ON_DEVICE else None

    def faults(self) -> Iterator[Fault]:
        """The mistakes that a change may mend, in the order in which to mend them."""
        report = self.report
        found = [Fault(p.slug, p.line) for p in self.checked.problems if p.slug]
        # The others need a name for the device.
        yield from (fault for fault in found if fault.name == HARD_CODED)
        if failure := self.failure:
            at = failure["culprit"] or failure["line"]
            if at and at["file"] == check.NAME:
                failed = failure["line"]
                is_own = failed and failed["file"] == check.NAME
                yield Fault(
                    DEVICE_ERROR,
                    at["line"],
                    failed["line"] if is_own else at["line"],
                    failure["why"],
                    tuple(a["name"] for a in failure["arguments"] if _is_cpu(a)),
                )
            return
        if self.runs and not check.uses_device(report):
            yield Fault(NO_DEVICE, 1)
        if self.runs and report["on_cpu"]:
            yield Fault(ON_CPU, report["on_cpu"]["line"])
        yield from (fault for fault in found if fault.name != HARD_CODED)

    def weight(self, errors: int = 0) -> Weight:
        """How far from right the script is; less is better.

        A script that fails is the better, the more `errors` came before this one.
        """
        sure = [p for p in self.checked.problems if p.sureness != "look"]
        fails = bool(self.failure)
        problems = self.checked.problems
        return fails, -errors * fails, self.checked.is_idle, len(sure), len(problems)


def _is_cpu(argument: dict[str, Any]) -> bool:
    return argument["device"] == "cpu" and bool(argument["name"])


def where(trial: Trial) -> Where | None:
    """What a trial's device error is, with lines as the first script counts them.

    Last comes how many of the failing line's tensors are on the CPU.
    """
    failure = trial.failure
    if failure is None:
        return None
    lines = [
        trial.lines[line["line"] - 1].number
        if line and line["file"] == check.NAME
        else 0
        for line in (failure["line"], failure["culprit"])
    ]
    on_cpu = sum(argument["device"] == "cpu" for argument in failure["arguments"])
    return lines[0], lines[1], failure["message"], failure["why"], on_cpu


def lines_of(text: str) -> list[str]:
    """The lines with their ends, and what follows the last end, perhaps nothing."""
    ends = [0, *(match.end() for match in NEWLINE.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


def correct(text: str, how: How) -> Correction:
    """Correct a script as far as the tried changes help.

    Without a run (`how` is "off"), only what reading it finds is corrected, and so it
    is in a script whose run takes too long.
    """
    text = text.removeprefix("\ufeff")
    search = Search(text, how)
    if search.is_stopped:  # it would be each time, while others wait for their turn
        return correct(text, "off")
    best = search.needed(search.corrected())
    known = {problem.say for problem in search.first.checked.problems}
    mended = ((c.line, c.say) for c in best.changes if c.say and c.say not in known)
    beside = tuple(dict.fromkeys(mended))
    corrected = Correction(
        best.text, best.checked, beside=beside, changes=_changes(text, best.text)
    )
    if how == "off" or best.status != OK:
        return corrected
    alone = check.with_run(Checked(), check.run(best.text, how, simulates=False))
    return replace(corrected, runs_without=alone.ran, why_not=alone.why_not)


class Search:
    """Tries changes of a script, within MOST_RUNS and SECONDS."""

    def __init__(self, text: str, how: How) -> None:
        self.text, self.how = text, how
        start = time.monotonic()
        self.end, self.runs = start + SECONDS, 1
        numbered = enumerate(lines_of(text), 1)
        self.first = Trial([Line(text, i) for i, text in numbered], (), how)
        is_late = time.monotonic() - start >= code.SECONDS - 1
        self.is_stopped = self.first.status == NOT_SIMULATED and is_late

    @property
    def may_try(self) -> bool:
        in_time = self.runs < MOST_RUNS and time.monotonic() < self.end
        is_short = len(self.text) <= MOST_CHARACTERS
        return in_time and is_short and not self.first.checked.unreadable

    def corrected(self) -> Trial:
        """The best script to which changes led that each mended a mistake."""
        return self._from(self.first, (where(self.first),))[1]

    def _from(
        self,
        now: Trial,
        met: tuple[Where | None, ...],
        given_up: frozenset[tuple[str, int]] = frozenset(),
    ) -> tuple[Weight, Trial]:
        """The best script to which changes of this one led, and its weight.

        `met` are the device errors on the way here. If the script still fails after a
        change and those that followed it, the next change is tried.
        """
        best = now.weight(len(met)), now
        left = (f for f in now.faults() if (f.name, f.line) not in given_up)
        if not self.may_try or (fault := next(left, None)) is None:
            return best
        for edited in _edits(now.text, fault):
            if not self.may_try:
                return best
            self.runs += 1
            trial = now.changed(edited, fault)
            if is_better(trial, now, fault, met):
                end = self._from(trial, (*met, where(trial)))
                best = min(best, end, key=itemgetter(0))
                if not end[1].failure:
                    return best
        if best[1] is not now:
            return best
        return self._from(now, met, given_up | {(fault.name, fault.line)})

    def needed(self, trial: Trial) -> Trial:
        """The script without the changes that later ones have made needless."""
        for change in reversed(trial.changes):
            if len(trial.changes) < 2 or not self.may_try:
                break
            if (other := trial.without(change)) is None:
                continue
            self.runs += 1
            if comes_as_far(other, trial) and other.weight() <= trial.weight():
                trial = other
        return trial


def _edits(text: str, fault: Fault) -> tuple[str, ...]:
    edits: tuple[str, ...] = child_process.call(
        "core.script.edits:edits",
        text,
        fault,
        seconds=check.SECONDS,
        memory_bytes=check.MEMORY_BYTES,
        hostile=True,
    )
    longest = 2 * len(text) + MOST_ADDED
    return tuple(edited for edited in edits if len(edited) <= longest)


def _changes(before: str, after: str) -> str:
    """The changes as a diff, made here, since a page would make it at each redraw."""
    if before == after:
        return ""
    try:
        difference: str = child_process.call(
            "core.script.differences:changes",
            before,
            after,
            seconds=check.SECONDS,
            memory_bytes=check.MEMORY_BYTES,
            hostile=True,
        )
    except child_process.ChildDiedError:
        return ""
    return difference


def comes_as_far(trial: Trial, before: Trial) -> bool:
    """Whether a script runs and trains, if another one did."""
    if trial.how == "off":
        return True
    trains = trial.report["steps"] > 0 or trial.failure or not before.report["steps"]
    return bool((trial.runs or not before.runs) and trains)


def is_better(
    trial: Trial, before: Trial, fault: Fault, met: Collection[Where | None]
) -> bool:
    """Whether a change has mended its fault, and let the script run as far as before.

    `met` are the device errors on the way here.
    """
    if not comes_as_far(trial, before):
        return False
    if fault.name == HARD_CODED:
        return True
    if (now := where(trial)) and any(
        earlier and earlier[:-1] == now[:-1] and earlier[-1] <= now[-1]
        for earlier in met
    ):
        return False
    if fault.name == DEVICE_ERROR:
        return not (trial.report["on_cpu"] and not before.report["on_cpu"])
    if fault.name == NO_DEVICE:
        return check.uses_device(trial.report)
    if fault.name == ON_CPU:
        return not trial.report["on_cpu"]
    counts = [Counter(p.slug for p in t.checked.problems) for t in (trial, before)]
    is_gone = counts[0][fault.name] < counts[1][fault.name]
    return is_gone and (not trial.failure or bool(before.failure))
