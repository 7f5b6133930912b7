"""Rules on what is moved to which device, and when.

Each is a function of a script that yields what it finds, and errs on the side of
silence: who is blamed wrongly once does not read the rest.
"""

import ast
import re
from collections.abc import Iterator

from core.mistakes.script.finding import Finding, Sureness
from core.mistakes.script.reading import (
    GPU,
    MOVES,
    Loop,
    Script,
    called,
    calls,
    dotted,
    keyword,
    names,
    owner,
    parameters_of,
    words,
)

DATA = re.compile(  # names that are hardly given to a module
    r"x|y|xb|yb|data|batch|inputs?|images?|imgs?|videos?|clips?|masks?|tokens|labels?|"
    r"targets?|features|outputs?|logits|preds?|predictions?",
    re.IGNORECASE,
)
RESHAPES = {"view", "reshape", "float", "long", "unsqueeze", "squeeze", "flatten"}
IN_PLACE = re.compile(r"transformers|torch_geometric|\bdgl\b")  # their batches' `.to`
HANDLES_DEVICES = re.compile(  # libraries and settings that move things by themselves
    r"\b(DataParallel|Accelerator|accelerate|Fabric|lightning|pytorch_lightning|"
    r"set_default_device|set_default_tensor_type|deepspeed|[Pp]refetch\w*|dali)\b"
)


def copy_not_kept(script: Script) -> Iterator[Finding]:
    """`x.to(device)` on a line by itself."""
    guess = not IN_PLACE.search(script.words)
    for call in script.all(*MOVES):
        name = owner(call)
        alone = isinstance(script.parents[call], ast.Expr)
        if not alone or not name or name in script.models:
            continue
        sure = name in script.tensors
        if sure or (guess and DATA.fullmatch(name)):
            move = called(call)
            say = (
                "A tensor is copied, not moved, and this copy is lost. Write "
                f"`{name} = {name}.{move}(...)`."
            )
            level: Sureness = "sure" if sure else "likely"
            yield Finding(call.lineno, level, say, "to_not_reassigned")


def moved_after_optimizer(script: Script) -> Iterator[Finding]:
    """The optimizer is given the parameters before the model is moved."""
    for optimizer in script.optimizers.values():
        place = script.place(optimizer)
        for model in parameters_of(optimizer):
            for call in script.all(*MOVES):
                between = [
                    each.lineno
                    for each in script.loops
                    if optimizer.lineno < each.lineno <= call.lineno
                ]
                after = call.lineno > optimizer.lineno and not between
                if owner(call) != model or not after or script.place(call) != place:
                    continue
                strict = called(optimizer) == "Adagrad"  # it makes its state at once
                yield Finding(
                    call.lineno,
                    "sure" if strict else "look",
                    f"`{model}` is moved after its optimizer was built in line "
                    f"{optimizer.lineno}. Move the model first: some optimizers "
                    "already hold tensors on the old device.",
                )


def model_not_moved(script: Script) -> Iterator[Finding]:
    """The batches are moved, the model is not."""
    if HANDLES_DEVICES.search(script.words) or re.search("device_map", script.words):
        return
    for loop in script.training_loops:
        moved = any(
            owner(each) in script.batch(loop) or _of_batch(each, script.batch(loop))
            for each in calls(loop, *MOVES)
        )
        asked = {dotted(each.func) for each in calls(loop)} & script.models
        for name, value, statement in script.assigned:
            made = script.makes_model(value)
            if not moved or name not in asked or made not in script.classes:
                continue
            given = [e for e in script.calls if name in {dotted(a) for a in e.args}]
            handed_on = [e for e in given if called(e) not in ("print", "len")]
            if name in script.moved_models or handed_on or keyword_device(value):
                continue
            say = (
                f"The batches are moved to the device, `{name}` is not. Write "
                f"`{name} = {made}(...).to(device)`, before the optimizer is built."
            )
            yield Finding(statement.lineno, "likely", say, "model_not_moved")


def _of_batch(call: ast.Call, batch: list[str]) -> bool:
    """Whether what is moved is made from a part of the batch, as `x.view(-1).to(d)`."""
    return isinstance(call.func, ast.Attribute) and bool(names(call.func) & set(batch))


def batch_not_moved(script: Script) -> Iterator[Finding]:
    """The model is on the device, and what it is given comes as the loader made it."""
    if HANDLES_DEVICES.search(script.words) or not script.moved_models:
        return
    for loop in script.loops:
        parts = script.batch(loop)
        for call in calls(loop):
            if script.around(call) is not loop or not call.args:
                continue
            first = dotted(call.args[0])
            if dotted(call.func) in script.moved_models and first in parts:
                slug, what = "data_not_moved", first
            elif call in script.cross_entropies and len(call.args) > 1:
                slug, what = "labels_not_moved", dotted(call.args[1])
            else:
                continue
            if what in parts and not _is_moved(loop, what):
                say = (
                    f"`{what}` comes from the loader on the CPU, and the model is on "
                    f"the device. Write `{what} = {what}.to(device)` in the loop."
                )
                yield Finding(call.lineno, "likely", say, slug)


def _is_moved(loop: Loop, name: str) -> bool:
    """Whether anything in the loop may have put it on the device."""
    for each in ast.walk(loop):
        if not isinstance(each, ast.stmt) or hasattr(each, "body"):
            continue
        if name not in names(each):
            continue
        if any(calls(each, *MOVES)) or GPU.search(words(each)):
            return True
        rebound = isinstance(each, ast.Assign) and any(
            name in names(target) for target in each.targets
        )
        if rebound and isinstance(each, ast.Assign):
            unpacks = isinstance(each.targets[0], ast.Tuple)
            if not unpacks and called(each.value) not in RESHAPES:
                return True
    return False


def cuda_written_down(script: Script) -> Iterator[Finding]:
    """`.cuda()` and `"cuda"` where nothing asks what is there."""
    calls_it = [
        call
        for call in script.calls
        if (called(call) == "cuda" and isinstance(call.func, ast.Attribute))
        or (called(call) in ("device", "to") and any(map(_is_cuda, call.args)))
        or _is_cuda(keyword(call, "device"))
    ]
    names_it = [
        value
        for name, value, _ in script.assigned
        if _is_cuda(value) and "device" in name.lower()
    ]
    found = []
    for each in sorted(calls_it + names_it, key=lambda each: each.lineno):
        tests = [
            above.test
            for above in script.up(each)
            if isinstance(above, ast.If | ast.IfExp)
        ]
        if not any(GPU.search(words(test)) for test in tests):
            found.append(each)
    if found:
        times = f", {len(found)} times" if len(found) > 1 else ""
        say = (
            f"CUDA is written into the script{times}: without an NVIDIA or AMD GPU it "
            "fails. Choose the device once, at the top, and write `.to(device)`."
        )
        yield Finding(found[0].lineno, "look", say, "cuda_hard_coded")


def numpy_on_device(script: Script) -> Iterator[Finding]:
    """`.numpy()` on what a model that was moved has answered, and nobody fetched."""
    back = [
        call
        for call in script.all("cpu", "to")
        if owner(call) in script.models and _to_cpu(call)
    ]
    accelerated = re.search(r"cuda|accelerator|mps|xpu", script.words)
    if back or not accelerated or HANDLES_DEVICES.search(script.words):
        return
    for call in script.all("numpy"):
        made = getattr(call.func, "value", None)
        if made is not None and not call.keywords and _on_device(script, made, call):
            say = (
                "The model is on the device, and so is what it returns, but a NumPy "
                "array lives in host memory. Write `.cpu().numpy()`."
            )
            yield Finding(call.lineno, "likely", say, "numpy_on_device")


def _to_cpu(call: ast.Call) -> bool:
    return called(call) == "cpu" or any(
        isinstance(each, ast.Constant) and each.value == "cpu" for each in call.args
    )


def _on_device(script: Script, value: ast.expr, use: ast.expr) -> bool:
    """Whether a value comes from a model that was moved, and was not fetched since."""
    if isinstance(value, ast.Name):
        before = script.values_before(value, use)
        return any(_on_device(script, each, each) for each in before)
    if isinstance(value, ast.Attribute | ast.Subscript):
        return _on_device(script, value.value, use)
    if not isinstance(value, ast.Call):
        return False
    if dotted(value.func) in script.moved_models:
        return True
    if called(value) in ("numpy", "tolist", "item") or _to_cpu(value):
        return False
    of_torch = owner(value) in ("torch", "F", "torch.nn.functional")
    given = value.args[:1] if of_torch else [getattr(value.func, "value", None)]
    return any(each is not None and _on_device(script, each, use) for each in given)


def _is_cuda(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and str(value.value).startswith("cuda")


def load_without_place(script: Script) -> Iterator[Finding]:
    """`torch.load` puts tensors back where they were, unless it is told where."""
    found = [
        call
        for call in script.all("load")
        if dotted(call.func) == "torch.load"
        and len(call.args) == 1
        and not any(each.arg in ("map_location", None) for each in call.keywords)
    ]
    if found:
        times = f", {len(found)} times in this script" if len(found) > 1 else ""
        say = (
            "On a machine without the GPU it was saved from, `torch.load` "
            f"fails{times}. Write "
            '`map_location="cpu"`, or the device that you use.'
        )
        yield Finding(found[0].lineno, "look", say, "cuda_checkpoint")


def keyword_device(value: ast.expr) -> bool:
    """Whether anything of a device is given to what makes the model."""
    return GPU.search(words(value)) is not None
