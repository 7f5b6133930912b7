"""Rules on what is moved to which device and when, and on what is saved and loaded.

Each is a function of a script that yields what it finds, and errs on the side of
silence: who is blamed wrongly once does not read the rest.
"""

import ast
import re
from collections.abc import Iterator

from core.script.syntax import (
    ACCELERATOR,
    GPU,
    MOVES,
    Finding,
    Loop,
    Script,
    Sureness,
    called,
    calls,
    dotted,
    identifiers,
    keyword,
    names,
    owner,
    parameters_of,
)
from core.words import Words

words = Words(__file__)

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
# What may have the name of the model that it was made of, and is no pickle of a class.
OF_A_MODEL = {"state_dict", "script", "trace", "freeze", "export"}


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
            say = words("rules.copy_not_kept", name=name, move=called(call))
            level: Sureness = "sure" if sure else "likely"
            yield Finding(call.lineno, level, say, "to_not_reassigned")


def moved_after_optimizer(script: Script) -> Iterator[Finding]:
    """The optimizer is given the parameters before the model is moved."""
    for optimizer in script.optimizers.values():
        built, place = optimizer.lineno, script.place(optimizer)
        for model in parameters_of(optimizer):
            for call in script.all(*MOVES):
                between = any(
                    built < loop.lineno <= call.lineno for loop in script.loops
                )
                after = call.lineno > built and not between
                if owner(call) == model and after and script.place(call) == place:
                    strict = called(optimizer) == "Adagrad"  # makes its state at once
                    say = words("rules.moved_after_optimizer", model=model, line=built)
                    yield Finding(call.lineno, "sure" if strict else "look", say)


def model_not_moved(script: Script) -> Iterator[Finding]:
    """The batches are moved, the model is not."""
    if HANDLES_DEVICES.search(script.words) or re.search("device_map", script.words):
        return
    for loop in script.training_loops:
        parts = set(script.batch(loop))
        if not any(  # also what is made of a part, as `x.view(-1).to(device)`
            isinstance(call.func, ast.Attribute) and names(call.func) & parts
            for call in calls(loop, *MOVES)
        ):
            continue
        asked = {dotted(call.func) for call in calls(loop)} & script.models
        for name, value, statement in script.assigned:
            model = script.makes_model(value)
            if name not in asked or model not in script.classes:
                continue
            handed_on = any(
                name in map(dotted, call.args) and called(call) not in ("print", "len")
                for call in script.calls
            )
            of_a_device = GPU.search(identifiers(value))
            if name not in script.moved_models and not handed_on and not of_a_device:
                say = words("rules.model_not_moved", name=name, model=model)
                yield Finding(statement.lineno, "likely", say, "model_not_moved")


def batch_not_moved(script: Script) -> Iterator[Finding]:
    """The model is on the device, and what it is given comes as the loader made it."""
    if HANDLES_DEVICES.search(script.words) or not script.moved_models:
        return
    for loop in script.loops:
        parts = script.batch(loop)
        for call in calls(loop):
            if script.around(call) is not loop or not call.args:
                continue
            name = dotted(call.args[0])
            if dotted(call.func) in script.moved_models and name in parts:
                slug = "data_not_moved"
            elif call in script.cross_entropies and len(call.args) > 1:
                slug, name = "labels_not_moved", dotted(call.args[1])
            else:
                continue
            if name in parts and not _is_moved(loop, name):
                say = words("rules.batch_not_moved", name=name)
                yield Finding(call.lineno, "likely", say, slug)


def _is_moved(loop: Loop, name: str) -> bool:
    """Whether anything in the loop may have put it on the device."""
    for node in ast.walk(loop):
        if not isinstance(node, ast.stmt) or hasattr(node, "body"):
            continue
        if name not in names(node):
            continue
        if any(calls(node, *MOVES)) or GPU.search(identifiers(node)):
            return True
        if isinstance(node, ast.Assign) and any(name in names(t) for t in node.targets):
            unpacks = isinstance(node.targets[0], ast.Tuple)
            if not unpacks and called(node.value) not in RESHAPES:
                return True
    return False


def cuda_written_down(script: Script) -> Iterator[Finding]:
    """`.cuda()` and `"cuda"` where nothing asks what is there."""
    written: list[ast.expr] = [
        call
        for call in script.calls
        if (called(call) == "cuda" and isinstance(call.func, ast.Attribute))
        or (called(call) in ("device", "to") and any(map(_is_cuda, call.args)))
        or _is_cuda(keyword(call, "device"))
    ]
    written += [
        value
        for name, value, _ in script.assigned
        if _is_cuda(value) and "device" in name.lower()
    ]

    def is_asked_for(node: ast.expr) -> bool:
        tests = [e.test for e in script.up(node) if isinstance(e, ast.If | ast.IfExp)]
        return any(GPU.search(identifiers(test)) for test in tests)

    if lines := sorted(node.lineno for node in written if not is_asked_for(node)):
        times = f", {len(lines)} times" if len(lines) > 1 else ""
        say = words("rules.cuda_written_down", times=times)
        yield Finding(lines[0], "look", say, "cuda_hard_coded")


def _is_cuda(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and str(value.value).startswith("cuda")


def numpy_on_device(script: Script) -> Iterator[Finding]:
    """`.numpy()` on what a model that was moved has answered, and was not fetched."""
    back = any(
        owner(call) in script.models and _to_cpu(call)
        for call in script.all("cpu", "to")
    )
    accelerated = ACCELERATOR.search(script.words)
    if back or not accelerated or HANDLES_DEVICES.search(script.words):
        return
    for call in script.all("numpy"):
        value = getattr(call.func, "value", None)
        if value is not None and not call.keywords and _on_device(script, value, call):
            say = words("rules.numpy_on_device")
            yield Finding(call.lineno, "likely", say, "numpy_on_device")


def _to_cpu(call: ast.Call) -> bool:
    return called(call) == "cpu" or any(
        isinstance(value, ast.Constant) and value.value == "cpu" for value in call.args
    )


def _on_device(script: Script, value: ast.expr, use: ast.expr) -> bool:
    """Whether a value comes from a model that was moved, and was not fetched since."""
    if isinstance(value, ast.Name):
        before = script.values_before(value, use)
        return any(_on_device(script, made, made) for made in before)
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
    return any(made is not None and _on_device(script, made, use) for made in given)


def load_without_place(script: Script) -> Iterator[Finding]:
    """`torch.load` puts tensors back where they were, unless it is told where."""
    lines = [
        call.lineno
        for call in script.all("load")
        if dotted(call.func) == "torch.load"
        and len(call.args) == 1
        and not any(given.arg in ("map_location", None) for given in call.keywords)
    ]
    if lines:
        times = f", {len(lines)} times in this script" if len(lines) > 1 else ""
        say = words("rules.load_without_place", times=times)
        yield Finding(lines[0], "look", say, "cuda_checkpoint")


def code_may_run(script: Script) -> Iterator[Finding]:
    """`torch.load` runs what a pickle tells it to, where it is allowed to."""
    for call in script.all("load"):
        only = keyword(call, "weights_only")
        allowed = isinstance(only, ast.Constant) and only.value is False
        if dotted(call.func) == "torch.load" and allowed:
            say = words("rules.code_may_run")
            yield Finding(call.lineno, "look", say, "pickle_refused")


def whole_model_saved(script: Script) -> Iterator[Finding]:
    """`torch.save(model, ...)`, also as one of the things in a checkpoint."""
    modules: dict[
        str, Sureness
    ] = {  # only likely: other objects may have parameters too
        name: "likely" for call in script.calls for name in parameters_of(call)
    }
    for name, value, _ in script.assigned:
        if script.makes_model(value):
            modules[name] = "sure"
    for name, value, _ in script.assigned:
        if called(value) in OF_A_MODEL:
            modules.pop(name, None)
    for call in script.all("save"):
        if dotted(call.func) != "torch.save":
            continue
        given = call.args[0] if call.args else keyword(call, "obj")
        parts = given.values if isinstance(given, ast.Dict) else [given]
        for name in filter(modules.get, map(dotted, parts)):
            say = words("rules.whole_model_saved", name=name)
            yield Finding(call.lineno, modules[name], say, "pickle_refused")
