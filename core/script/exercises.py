"""The exercises in content/, and whether a learner's lines solve one.

The lines run in a process of their own, and their results are judged outside of it. An
answer with the same results as the solution is right, no matter how it is written.
"""

import math
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from core.folders import CONTENT
from core.jobs import code
from to_device.dryrun.report import LONGEST_TEXT, OK, Request
from to_device.errors import ExplainedError, quoted
from to_device.words import Words

words = Words(__file__)

FILE = CONTENT / "exercises.toml"
MOST_CHARACTERS = 5_000
NAME = "your code"  # the name of the learner's code in messages
# A dry run leaves a loop after this many optimizer steps. The number is so large that
# only the time limit ends a loop early.
STEPS = 10**6
# What torch says on a machine without a GPU, if code asks for CUDA all the same
NO_GPU = re.compile(r"no NVIDIA (?:driver|GPU)|not compiled with CUDA", re.IGNORECASE)
# Errors of code that can't be read as Python
SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
OF_STEPS = {"waits", "graph"}  # facts about what happens in each training step
FAILED, UNREAD = "failed", "unread"  # flaws that are no facts, see Verdict
# Whether a machine has a simulated GPU, for the names in an exercise's `machines`
SIMULATED = {"with": True, "without": False}
MOST_LINES = 2  # at each of `places`: a line that moves leaves one and comes to another
TOLERANCE = 1e-4  # numbers this close are equal: two solutions may round differently


@dataclass(frozen=True)
class Exercise:
    """Lines to repair or to write, and what has to be true once they are right.

    The head of content/exercises.toml explains the fields.
    """

    ask: str
    code: str
    solution: str  # one of several right answers
    right: str  # praise for a right answer
    before: str
    after: str
    say: Mapping[str, str]  # keyed by fact: what to say if the fact is wrong
    machines: tuple[str, ...] = ("with",)
    lesson: str = ""  # the lesson's title; "": the exercise has the same title
    given: str = ""  # lines that stand before the learner's in a script of their own
    # Where no code runs: by what has to be done, the lines at which it can be done, and
    # the lines that some right answers change besides
    places: Mapping[str, Sequence[int]] = field(default_factory=dict)
    also: Sequence[int] = ()
    # Keyed by fact: what is ticked off once the fact is right, on each machine
    checks: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := {*self.machines} - {*SIMULATED}:
            raise ValueError(f"machines: {unknown.pop()!r} must be 'with' or 'without'")
        if unknown := {*self.checks} - {*self.say}:
            raise ValueError(f"checks: {unknown.pop()!r} is no fact in `say`")
        lines = range(1, len(self.code.splitlines()) + 1)
        if missing := {*self.also}.union(*self.places.values()).difference(lines):
            raise ValueError(f"places: the code has no line {missing.pop()!r}")
        if self.code and not self.places:
            raise ValueError("places: where no code runs, lines are chosen")

    def places_found(self, picked: Collection[int]) -> list[str]:
        """Those of `places` for which a line of their own is among these lines.

        A line that would do for two places counts for one, whichever leaves lines for
        more of the others.
        """
        place_at: dict[int, str] = {}

        def takes(place: str, tried: set[int]) -> bool:
            for line in sorted({*self.places[place]} & {*picked}):
                if line not in tried:
                    tried.add(line)
                    if line not in place_at or takes(place_at[line], tried):
                        place_at[line] = place
                        return True
            return False

        # The place with the fewest lines comes first, so it's the one that is named.
        for place in sorted(self.places, key=lambda place: len(self.places[place])):
            takes(place, set())
        return [place for place in self.places if place in place_at.values()]


@dataclass(frozen=True)
class Verdict:
    solved: bool
    say: str  # praise, or the first flaw
    printed: str = ""
    hint: str = ""  # which line to change, and why
    passed: tuple[str, ...] = ()  # the `checks` whose facts are right
    ran: bool = True  # False: it isn't Python, so it doesn't count as a try
    flaw: str = ""  # the first wrong fact; FAILED if the code did, UNREAD without facts
    machine: str = ""  # the one of the exercise's `machines` that showed the flaw


@cache
def load(file: Path = FILE) -> Mapping[str, Exercise]:
    """The exercises, keyed by title. Raises ValueError, which says what is wrong."""
    try:
        exercises = {}
        for title, fields in tomllib.loads(file.read_text("utf-8")).items():
            texts = {k: v.strip("\n") for k, v in fields.items() if isinstance(v, str)}
            exercises[title] = Exercise(**{**fields, **texts})
        return exercises
    except (OSError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{file.name} can't be read: {error}") from None


def judge(title: str, text: str, how: code.How) -> Verdict:
    """Judge an answer: run it on each of the machines until one shows a flaw."""
    exercise = load()[title]
    if len(text) > MOST_CHARACTERS:
        too_long = "Your code is too long for this exercise. Change only what is wrong."
        return Verdict(False, too_long, ran=False)
    printed, passed = "", {*exercise.checks}
    for machine in exercise.machines:
        report, printed = code.run(request(exercise, text, machine), how)
        expected = solution_facts(title, machine)
        hint, ran = "", True
        try:
            found = facts(exercise, report)
            flaw, said = next(_flaws(exercise, report, found, expected), ("", ""))
            passed = {name for name in passed if same(found[name], expected[name])}
            if not report["steps"]:  # a step that isn't there waits for nothing
                passed -= OF_STEPS
            if failure := report["failure"]:
                hint = code.hint(failure, NAME)
                if not SIMULATED[machine] and NO_GPU.search(failure["message"]):
                    hint = f"{hint} {words('exercise.unchecked_device')}".strip()
                ran = failure["kind"] not in SYNTAX_ERRORS
        except Exception:  # the learner's code wrote a report itself, with wrong fields
            flaw, said, passed = UNREAD, "Your code's result can't be read.", set()
        if flaw:
            where = ""
            if len(exercise.machines) > 1 and ran:
                has_gpu = SIMULATED[machine]
                where = (
                    "On a machine with a GPU: "
                    if has_gpu
                    else "On a machine without a GPU: "
                )
            say, hint = f"{where}{said}"[:LONGEST_TEXT], hint[:LONGEST_TEXT]
            ticked = tuple(name for name in exercise.checks if name in passed)
            return Verdict(False, say, printed, hint, ticked, ran, flaw, machine)
    return Verdict(True, exercise.right, printed, passed=tuple(exercise.checks))


def judge_lines(exercise: Exercise, picked: Collection[int]) -> Verdict:
    """Judge which lines the learner would change, where the page runs no code."""
    chosen, count = {*picked}, len(exercise.places)
    found = exercise.places_found(chosen)
    missed = exercise.places.keys() - {*found}
    at_places = chosen.intersection(chain(*exercise.places.values()))
    needless = sorted(chosen - at_places - {*exercise.also})
    if missed and count == 1:
        say = "You haven't found the place yet."
    elif missed:
        say = f"You found {len(found)} of {count} places"
        say += f": {', '.join(found)}." if found else "."
        if any(chosen.intersection(exercise.places[place]) for place in missed):
            say += " Each place needs a line of its own."
    else:
        places = {1: "the place", 2: "both places"}.get(count, f"all {count} places")
        say = f"You found {places}."
        is_much = len(at_places) > MOST_LINES * count
        if not needless and not is_much:
            why = exercise.right.removeprefix("Right: ")
            return Verdict(True, f"{say} {why[:1].upper()}{why[1:]}")
        if is_much:
            say += " But you chose more lines than have to change."
    if len(needless) == 1:
        say += f" Line {needless[0]} can stay as it is."
    elif needless:
        *others, last = map(str, needless)
        say += f" Lines {', '.join(others)} and {last} can stay as they are."
    return Verdict(False, say)


def request(exercise: Exercise, text: str, machine: str) -> Request:
    return Request(
        NAME,
        text,
        steps=STEPS,
        seconds=code.SECONDS - 1,
        simulates=SIMULATED[machine],
        before=exercise.before,
        after=exercise.after,
    )


@cache
def solution_facts(title: str, machine: str) -> dict[str, Any]:
    exercise = load()[title]
    report, _ = code.run(request(exercise, exercise.solution, machine), "own")
    if report["status"] != OK:
        raise ExplainedError(
            " ".join(
                [
                    "The exercise's own solution did not run here, so your code "
                    "can't be checked.",
                    *report["notes"],
                ]
            )
        )
    return facts(exercise, report)


def facts(exercise: Exercise, report: Mapping[str, Any]) -> dict[str, Any]:
    """Facts named in `exercise.say`: from the dry run, or set by `exercise.after`."""
    growth = report["growth"]
    keeps = growth and growth["keeps_graph"]
    values = {
        # All waits in each step except for copies to the device, which it needs.
        "waits": [
            f"Line {wait['line']['line']}: {wait['cause']}"
            for wait in report["waits"]
            if "copy" not in wait["cause"]
        ],
        "graph": f"Line {growth['line']['line']}" if keeps else "",
        **report["facts"],
    }
    return {name: values.get(name) for name in exercise.say}


def _flaws(
    exercise: Exercise,
    report: Mapping[str, Any],
    mine: Mapping[str, Any],
    right: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    """An answer's flaws, as in Verdict, each with its sentence, the worst first."""
    if failure := report["failure"]:
        error = code.raised(failure)
        is_read = failure["kind"] not in SYNTAX_ERRORS
        gone = (
            "Your code ran to the end, but checking its result raised "
            f"{error}. Keep the original variable names."
            if is_read
            else f"{error}."
        )
        yield FAILED, code.failed(failure, NAME) or gone
    elif report["status"] != OK:
        yield FAILED, " ".join(report["notes"])
    for name, sentence in exercise.say.items():
        if not same(mine[name], right[name]):
            fact, right_fact = in_words(mine[name]), in_words(right[name])
            yield name, sentence.format(mine=fact, right=right_fact)


def same(mine: Any, right: Any) -> bool:
    """Whether two facts are equal, apart from how numbers were rounded."""
    if isinstance(right, float) and isinstance(mine, float | int):
        return math.isclose(mine, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(right, list) and isinstance(mine, list):
        return len(mine) == len(right) and all(map(same, mine, right))
    return bool(mine == right)


def in_words(fact: Any) -> str:
    if isinstance(fact, list):
        return ", ".join(map(in_words, fact)) or "nothing"
    return f"{fact:.4g}" if isinstance(fact, float | int) else quoted(fact)
