"""What the lines of an exercise have to do: each goal says what is still missing.

A goal is a function of a script; it returns "" where it is reached. Any way to reach it
will do.
"""

import ast
import re
from collections.abc import Callable

from core.mistakes.script.reading import (
    MOVES,
    Script,
    called,
    calls,
    dotted,
    keyword,
    names,
    owner,
    words,
)

Goal = Callable[[Script], str]
FREE = re.compile(r"no_grad|inference_mode|set_grad_enabled")


def _asked(script: Script) -> list[ast.Call]:
    """The calls of the model."""
    return [
        each
        for each in script.calls
        if dotted(each.func) in script.models | {"model", "net"}
    ]


def _moved(script: Script) -> list[ast.Call]:
    """The calls that move the model: `model.to(device)`, `Net().to(device)`."""
    made = [
        call
        for name, value, _ in script.assigned
        if name in script.models | {"model", "net"}
        for call in calls(value, *MOVES)
    ]
    alone = [each for each in script.all(*MOVES) if owner(each) in ("model", "net")]
    return made + alone


def asks_for_a_device(script: Script) -> str:
    if re.search(r"is_available|current_accelerator", script.words):
        return ""
    return (
        "Ask torch what is there: `torch.accelerator`, or `torch.cuda.is_available()`."
    )


def falls_back_on_the_cpu(script: Script) -> str:
    if not re.search(r"\bcpu\b", script.words):
        return 'What if there is no accelerator? Then `device` has to be `"cpu"`.'
    unchecked = any(
        keyword(each, "check_available") is None
        for each in script.all("current_accelerator")
    )
    if unchecked and "is_available" not in script.words:
        return (
            "`current_accelerator()` tells what torch was built for, here or not: "
            "write `check_available=True`."
        )
    return ""


def the_model_is_moved(script: Script) -> str:
    return "" if _moved(script) else "The model has to be moved to the device too."


def its_input_is_moved(script: Script) -> str:
    for call in _asked(script):
        given = call.args[0] if call.args else None
        if given is None:
            return "The model is given nothing."
        made = [
            value
            for name, value, _ in script.assigned
            if name == dotted(given) != "" and _of_device(value)
        ]
        if not made and not _of_device(given):
            return "The model's input is still on the CPU."
    return ""


def _of_device(value: ast.expr) -> bool:
    """Whether a tensor is moved there, or made on the device."""
    moved = any(calls(value, *MOVES))
    return moved or any(keyword(each, "device") is not None for each in calls(value))


def moved_before_the_optimizer(script: Script) -> str:
    built = [
        each
        for each in script.calls
        if any(calls(each, "parameters")) and called(each) != "parameters"
    ]
    if not built:
        return "The optimizer has to be given the model's parameters."
    if any(move.lineno < built[0].lineno for move in _moved(script)):
        return ""
    return "The model is moved after its optimizer was built: the move comes first."


def gradients_are_cleared(script: Script) -> str:
    """In the loop, and not between `backward` and `step`."""
    backward = next(script.all("backward"), None)
    loop = script.around(backward) if backward else None
    if backward is None or loop is None:
        return "`backward` belongs into the loop."
    cleared = [each for each in calls(loop, "zero_grad")]
    if not cleared:
        return "Gradients add up from step to step: the loop has to clear them."
    step = next(calls(loop, "step"), backward)
    if any(backward.lineno < each.lineno < step.lineno for each in cleared):
        return "Between `backward` and `step` the new gradients are cleared as well."
    return ""


def evaluation_mode(script: Script) -> str:
    switched = [
        each
        for each in script.calls
        if called(each) == "eval"
        or (called(each) == "train" and "False" in _text(each))
    ]
    first = min((each.lineno for each in _asked(script)), default=0)
    if not switched:
        return "Dropout is still on, and changes every answer of the model."
    if switched[0].lineno > first:
        return "`eval()` comes too late: the model was asked before it."
    return ""


def _text(call: ast.Call) -> str:
    return " ".join(str(getattr(each, "value", "")) for each in call.args)


def without_gradients(script: Script) -> str:
    """As a decorator, or as a block around the model's calls."""
    for call in _asked(script):
        around = list(script.up(call))
        blocks = [
            item.context_expr
            for each in around
            if isinstance(each, ast.With)
            for item in each.items
        ]
        marks = [
            mark
            for each in around
            if isinstance(each, ast.FunctionDef)
            for mark in each.decorator_list
        ]
        if not any(FREE.search(words(each)) for each in [*blocks, *marks]):
            return "Autograd still records each forward pass, for no `backward`."
    return ""


def waits_before_both_readings(script: Script) -> str:
    read = [each.lineno for each in script.all("perf_counter", "time", "monotonic")]
    waits = [each.lineno for each in script.all("synchronize")]
    asked = [each.lineno for each in _asked(script)]
    if len(read) < 2 or not asked:
        return "Read the clock before the model is asked, and after it."
    if not any(asked[-1] <= line <= read[-1] for line in waits):
        return "The clock stops before the device is done: wait for it first."
    if not any(line <= read[0] for line in waits):
        return (
            "Half right: the device may still be busy with earlier work when the clock "
            "starts. Wait for it there too."
        )
    return ""


def losses_are_added_up(script: Script) -> str:
    """In the loop: as `total += ...`, as `total = total + ...`, or in a list."""
    for loop in script.training_loops:
        for each in script.in_every_turn(loop):
            adds = isinstance(each, ast.AugAssign) or called(each) == "append"
            again = isinstance(each, ast.Assign) and any(
                dotted(target) in names(each.value) and dotted(target)
                for target in each.targets
                if isinstance(each.value, ast.BinOp)
            )
            if adds or again:
                return ""
    return "The losses have to be added up still, in every step."


def loaded_anywhere(script: Script) -> str:
    for call in script.all("load"):
        place = keyword(call, "map_location")
        if place is None and len(call.args) > 1:
            place = call.args[1]
        if place is not None and re.search(r"\bcuda", words(place)):
            return "Then it loads only where there is CUDA."
    return ""


def a_loss_of_logits(script: Script) -> str:
    if script.cross_entropies:
        return ""
    return "Keep the cross entropy, and give it what the model returns."


def the_sampler_is_told_the_epoch(script: Script) -> str:
    """In the loop over the epochs, and not with the same number each time."""
    told = next(script.all("set_epoch"), None)
    if told is None:
        return "A `DistributedSampler` draws by the epoch's number: tell it."
    loop = script.around(told)
    if loop is None or script.around(loop) is not None:
        return "Tell it once in each epoch, before its first batch."
    given = told.args[0] if told.args else None
    if given is None or isinstance(given, ast.Constant):
        return "It needs the number of this epoch, a new one each time."
    return ""


GOALS: dict[str, Goal] = {
    each.__name__: each
    for each in (
        *(asks_for_a_device, falls_back_on_the_cpu, the_model_is_moved),
        *(its_input_is_moved, moved_before_the_optimizer, gradients_are_cleared),
        *(evaluation_mode, without_gradients, waits_before_both_readings),
        *(losses_are_added_up, loaded_anywhere, a_loss_of_logits),
        the_sampler_is_told_the_epoch,
    )
}
