"""The exercises of exercises.toml, and whether the lines of a learner solve one.

A goal says what is still missing in a script, "" where it is reached; any way to reach
it will do.
"""

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.script.rules import RULES
from core.script.syntax import (
    MOVES,
    NO_GRADIENTS,
    Script,
    UnreadableError,
    called,
    calls,
    dotted,
    identifiers,
    keyword,
    names,
    owner,
)
from core.words import Words

words = Words(__file__)

FILE = Path(__file__).parents[2] / "exercises.toml"
MOST_CHARACTERS = 2_000  # few enough for the web server to read them at once
BY_NAME = {rule.__name__: rule for rule in RULES}


def _asked(script: Script) -> list[ast.Call]:
    """The calls of the model."""
    models = script.models | {"model", "net"}
    return [call for call in script.calls if dotted(call.func) in models]


def _moved(script: Script) -> list[ast.Call]:
    """The calls that move the model: `model.to(device)`, `Net().to(device)`."""
    made = [
        call
        for name, value, _ in script.assigned
        if name in script.models | {"model", "net"}
        for call in calls(value, *MOVES)
    ]
    return made + [c for c in script.all(*MOVES) if owner(c) in ("model", "net")]


def asks_for_a_device(script: Script) -> str:
    asks = re.search(r"is_available|current_accelerator", script.words)
    return "" if asks else words("goals.ask")


def falls_back_on_the_cpu(script: Script) -> str:
    if not re.search(r"\bcpu\b", script.words):
        return words("goals.no_cpu")
    unchecked = any(
        keyword(call, "check_available") is None
        for call in script.all("current_accelerator")
    )
    available = "is_available" in script.words
    return words("goals.unchecked") if unchecked and not available else ""


def the_model_is_moved(script: Script) -> str:
    return "" if _moved(script) else words("goals.model_not_moved")


def its_input_is_moved(script: Script) -> str:
    for call in _asked(script):
        if not call.args:
            return words("goals.no_input")
        name = dotted(call.args[0])
        made = [v for n, v, _ in script.assigned if n == name != ""]
        if not any(map(_on_a_device, [call.args[0], *made])):
            return words("goals.input_not_moved")
    return ""


def _on_a_device(value: ast.expr) -> bool:
    """Whether a tensor is moved there, or made on the device."""
    moved = any(calls(value, *MOVES))
    return moved or any(keyword(call, "device") is not None for call in calls(value))


def moved_before_the_optimizer(script: Script) -> str:
    built = [
        call.lineno
        for call in script.calls
        if any(calls(call, "parameters")) and called(call) != "parameters"
    ]
    if not built:
        return words("goals.no_optimizer")
    early = any(move.lineno < built[0] for move in _moved(script))
    return "" if early else words("goals.moved_late")


def gradients_are_cleared(script: Script) -> str:
    """In the loop, and not between `backward` and `step`."""
    backward = next(script.all("backward"), None)
    loop = script.around(backward) if backward else None
    if backward is None or loop is None:
        return words("goals.no_loop")
    cleared = [call.lineno for call in calls(loop, "zero_grad")]
    if not cleared:
        return words("goals.not_cleared")
    step = next(calls(loop, "step"), backward)
    late = any(backward.lineno < line < step.lineno for line in cleared)
    return words("goals.cleared_late") if late else ""


def evaluation_mode(script: Script) -> str:
    def off(call: ast.Call) -> bool:
        given = (str(getattr(value, "value", "")) for value in call.args)
        return called(call) == "train" and "False" in " ".join(given)

    switched = [c.lineno for c in script.calls if called(c) == "eval" or off(c)]
    first = min((call.lineno for call in _asked(script)), default=0)
    if not switched:
        return words("goals.training_mode")
    return words("goals.eval_late") if switched[0] > first else ""


def without_gradients(script: Script) -> str:
    """As a decorator, or as a block around the model's calls."""
    for call in _asked(script):
        marks: list[ast.expr] = []
        for around in script.up(call):
            if isinstance(around, ast.With):
                marks += [item.context_expr for item in around.items]
            elif isinstance(around, ast.FunctionDef):
                marks += around.decorator_list
        if not any(NO_GRADIENTS.search(identifiers(mark)) for mark in marks):
            return words("goals.recorded")
    return ""


def waits_before_both_readings(script: Script) -> str:
    clocks = ("perf_counter", "time", "monotonic")
    read = [call.lineno for call in script.all(*clocks)]
    waits = [call.lineno for call in script.all("synchronize")]
    asked = [call.lineno for call in _asked(script)]
    if len(read) < 2 or not asked:
        return words("goals.no_readings")
    if not any(asked[-1] <= line <= read[-1] for line in waits):
        return words("goals.stops_early")
    if not any(line <= read[0] for line in waits):
        return words("goals.starts_early")
    return ""


def losses_are_added_up(script: Script) -> str:
    """In the loop: as `total += ...`, as `total = total + ...`, or in a list."""
    for loop in script.training_loops:
        for node in script.in_every_turn(loop):
            if isinstance(node, ast.AugAssign) or called(node) == "append":
                return ""
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
                targets = set(map(dotted, node.targets)) - {""}
                if targets & names(node.value):
                    return ""
    return words("goals.not_added")


def loaded_anywhere(script: Script) -> str:
    for call in script.all("load"):
        place = keyword(call, "map_location")
        if place is None and len(call.args) > 1:
            place = call.args[1]
        if place is not None and re.search(r"\bcuda", identifiers(place)):
            return words("goals.only_cuda")
    return ""


def a_loss_of_logits(script: Script) -> str:
    return "" if script.cross_entropies else words("goals.no_cross_entropy")


def the_sampler_is_told_the_epoch(script: Script) -> str:
    """In the loop over the epochs, and not with the same number each time."""
    call = next(script.all("set_epoch"), None)
    if call is None:
        return words("goals.no_epoch")
    loop = script.around(call)
    if loop is None or script.around(loop) is not None:
        return words("goals.epoch_outside")
    if not call.args or isinstance(call.args[0], ast.Constant):
        return words("goals.same_epoch")
    return ""


GOALS: dict[str, Callable[[Script], str]] = {
    goal.__name__: goal
    for goal in (
        *(asks_for_a_device, falls_back_on_the_cpu, the_model_is_moved),
        *(its_input_is_moved, moved_before_the_optimizer, gradients_are_cleared),
        *(evaluation_mode, without_gradients, waits_before_both_readings),
        *(losses_are_added_up, loaded_anywhere, a_loss_of_logits),
        the_sampler_is_told_the_epoch,
    )
}


@dataclass(frozen=True)
class Exercise:
    """A few lines with a mistake, and what has to be so once it is mended."""

    ask: str
    code: str
    solution: str  # one of several
    right: str  # praise for a right answer
    goals: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()  # names of rules that must find nothing
    keep: tuple[str, ...] = ()  # names that must still be called

    def __post_init__(self) -> None:
        unknown = {*self.goals} - {*GOALS} | {*self.rules} - {*BY_NAME}
        if unknown:
            raise ValueError(f"there is no goal or rule {sorted(unknown)[0]}")


@dataclass(frozen=True)
class Verdict:
    """Whether it is solved, and a sentence about it."""

    solved: bool
    say: str


def load(file: Path = FILE) -> Mapping[str, Exercise]:
    """The exercise of each lesson, by its title. ValueError says what is wrong."""
    try:
        lessons = tomllib.loads(file.read_text("utf-8"))
        return {title: _exercise(fields) for title, fields in lessons.items()}
    except (OSError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{file.name} can't be read: {error}") from None


def _exercise(written: Mapping[str, Any]) -> Exercise:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value.strip("\n")
        for key, value in written.items()
    }
    return Exercise(**fields)


def judge(exercise: Exercise, text: str) -> Verdict:
    """What is right or still missing; the first thing alone."""
    if len(text) > MOST_CHARACTERS:
        return Verdict(False, words("judge.long"))
    try:
        missing = next(_missing(exercise, Script(text)), "")
    except UnreadableError as error:
        missing = str(error)
    except RecursionError:
        missing = words("judge.nested")
    return Verdict(not missing, missing or exercise.right)


def _missing(exercise: Exercise, script: Script) -> Iterator[str]:
    called_names = {called(call) for call in script.calls}
    called_names |= {dotted(call.func) for call in script.calls}
    for name in exercise.keep:
        if name not in called_names:
            yield words("judge.gone", name=name)
    yield from filter(None, (GOALS[goal](script) for goal in exercise.goals))
    for rule in exercise.rules:
        for finding in BY_NAME[rule](script):
            yield f"Line {finding.line}: {finding.say}"
