"""The mistakes in a training script, line by line, found by reading and running it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from core.jobs import child_process, code
from core.script import lint_rules
from core.script.syntax import ParsedScript, Problem, Sureness, UnreadableError
from to_device.dryrun.report import (
    DEVICE_ERROR,
    LONGEST_TEXT,
    NEWLINE,
    OK,
    SCRIPT_ERROR,
    Request,
)
from to_device.errors import plain, quoted
from to_device.words import Words

words = Words(__file__)

SECONDS = 8.0  # limit for reading a script: 200 KB of training code take 2 s
MEMORY_BYTES = 1 << 30
# Datasets that core.data.generated makes
USES_DATASETS = re.compile(r"\b(?:MNIST|FashionMNIST|KMNIST|EMNIST|CIFAR100?)\(")
MOST_PROBLEMS = 100  # a page draws a box for each
NAME = "script"
# Code that runs before the script, and leaves no name behind
STANDS_IN = "__import__('importlib').import_module('{}').stand_in()"
How = Literal["off", "here", "confined"]


@dataclass(frozen=True)
class Checked:
    problems: tuple[Problem, ...] = ()
    unreadable: str = ""
    ran: bool = False  # True: the script ran to its end, or to a device error
    is_idle: bool = False  # it ran, and put nothing on the device
    why_not: str = ""  # why the script did not run, or did not reach its end


def check(text: str) -> Checked:
    """What the rules find in a script, by line, or why it is unreadable."""
    try:
        script = ParsedScript(text)
        problems = {item for rule in lint_rules.RULES for item in rule(script)}
    except UnreadableError as error:
        return Checked(unreadable=str(error))
    except (RecursionError, MemoryError):
        return Checked(unreadable="Code in the script is nested too deeply.")
    return Checked(problems=_first(problems))


def _first(problems: set[Problem]) -> tuple[Problem, ...]:
    """The problems by line, at most MOST_PROBLEMS."""
    return tuple(sorted(problems, key=_order)[:MOST_PROBLEMS])


def _order(problem: Problem) -> tuple[int, int, str]:
    """Sort by line; within a line, the surest problem comes first."""
    rank = ("sure", "likely", "look").index(problem.sureness)
    return problem.line, rank, problem.say


def check_in_child(text: str, how: How = "off") -> Checked:
    """Check a script in a process of its own, since a stranger wrote it.

    `how` is the `kind` of an execution_policy.Mode. Unless `how` is "off", the script
    is also run, and what its run shows is added to the problems.
    """
    checked = read(text)
    if how == "off" or checked.unreadable or not text.strip():
        return checked
    return with_run(checked, run(text, how))


def read(text: str) -> Checked:
    """What `check` finds, in a process of its own."""
    checked: Checked = child_process.call(
        "core.script.check:check",
        text,
        seconds=SECONDS,
        memory_bytes=MEMORY_BYTES,
        hostile=True,
    )
    return _received(checked, text)


def run(text: str, how: code.How, simulates: bool = True) -> dict[str, Any]:
    """The report of a dry run or, without `simulates`, of a run on the CPU."""
    modules = ["core.script.absent_packages"]
    modules += ["core.data.generated"] if USES_DATASETS.search(text) else []
    request = Request(
        NAME,
        text,
        seconds=code.SECONDS - 1,
        has_magic=True,
        before="\n".join(map(STANDS_IN.format, modules)),
        simulates=simulates,
    )
    report, _ = code.run(request, how)
    if report["fails_after_visit"]:
        report, _ = code.run(replace(request, visits=False), how)
    return report


def with_run(checked: Checked, report: dict[str, Any]) -> Checked:
    """What reading a script found, and what its run showed."""
    problems = set(checked.problems)
    if report["status"] in (OK, DEVICE_ERROR):  # the run knows what stays on the CPU
        by_running = lint_rules.DATA_NOT_MOVED, lint_rules.LABELS_NOT_MOVED
        problems = {item for item in problems if item.slug not in by_running}
    if report["status"] != SCRIPT_ERROR:
        problems.update(found_by_running(report))
    ordered = _first(problems)
    if report["status"] in (OK, DEVICE_ERROR):
        is_idle = not uses_device(report)
        return replace(checked, problems=ordered, ran=True, is_idle=is_idle)
    why_not = " ".join(report["notes"])
    if failure := report["failure"]:
        error = code.raised(failure)
        line = failure["line"]["line"] if failure["line"] else None
        why_not = f"Line {line} raised {error}." if line else f"{error}."
        if failure["kind"] == ModuleNotFoundError.__name__:
            why_not += f" {words('ran.no_package')}"
    return replace(checked, problems=ordered, why_not=why_not)


def uses_device(report: dict[str, Any]) -> bool:
    """Whether a script put anything on the simulated device, or tried to."""
    return bool(report["failure"] or report["memory"] or report["on_cpu"])


def _received(checked: Checked, text: str) -> Checked:
    """What a child found, with nothing that a page can't draw.

    Raises UnreadableAnswerError if a problem is at none of the script's lines.
    """
    lines = range(1, len(NEWLINE.split(text)) + 1)
    if any(problem.line not in lines for problem in checked.problems):
        raise child_process.UnreadableAnswerError
    problems = (
        replace(item, say=plain(item.say, LONGEST_TEXT)) for item in checked.problems
    )
    return replace(
        checked,
        problems=tuple(problems),
        unreadable=plain(checked.unreadable, LONGEST_TEXT),
    )


def found_by_running(report: dict[str, Any]) -> Iterator[Problem]:
    def at(line: Any, sure: Sureness, say: str, slug: str = "") -> Iterator[Problem]:
        if line and line["file"] == NAME:
            yield Problem(line["line"], sure, say, slug)

    if failure := report["failure"]:
        culprit = failure["culprit"] or failure["line"]
        line = failure["line"]["line"] if failure["line"] else ""
        say = f"Line {line} raised {code.raised(failure)} on the simulated GPU."
        if failure["why"] and culprit:
            say += f" {code.advice(culprit['line'], failure['why'])}"
        yield from at(culprit, "sure", say)
    yield from at(report["on_cpu"], "sure", words("ran.on_cpu"))
    if (growth := report["growth"]) and growth["keeps_graph"]:
        for keeper in (growth["line"], *growth["also"]):
            yield from at(keeper, "sure", words("ran.graph"), "graph_kept")
    for remark in report["remarks"]:
        sure: Sureness = "sure" if remark["sure"] else "likely"
        yield from at(remark["line"], sure, remark["say"], remark["slug"])
    for wait in report["waits"]:
        if "copy" not in wait["cause"]:
            say = (
                "In each step, the CPU waits here for the GPU ({cause}, "
                "{times}×). Keep sums on the GPU, and fetch them only once "
                "in a while."
            ).format(times=wait["times"], cause=quoted(wait["cause"]))
            yield from at(wait["line"], "look", say, "item_every_step")
    for copy in report["copies"]:
        if copy["same"]:
            yield from at(
                copy["line"],
                "look",
                "This line copies the same data to the GPU in each step. "
                "Copy it once, before the loop.",
            )
