"""The rules, one for each mistake that can be found by reading a script.

A rule is a function that takes a script and yields what it finds. When in doubt, a rule
stays silent: people who have been blamed wrongly once don't read the rest.
"""

import ast
import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import chain
from operator import attrgetter

from core.script.syntax import (
    Located,
    Loop,
    ParsedScript,
    Place,
    Problem,
    Sureness,
    callee,
    dotted,
    keyword,
    names_in,
    owner,
)
from to_device.words import Words

words = Words(__file__)

GPU = re.compile(r"cuda|gpu|accelerator|is_available|device", re.IGNORECASE)
ACCELERATOR = re.compile(r"cuda|accelerator|mps|xpu")
WAITS = {"synchronize", "elapsed_time", "item", "tolist", "cpu"}
CLEARS = re.compile(r"zero_grad|clear_grad|\bgrad\b|zero_grads")
DATA_NOT_MOVED, LABELS_NOT_MOVED = "data_not_moved", "labels_not_moved"
MOVES = ("to", "cuda")
# Calls that put everything on a device, in Accelerate, Fabric, and torch.
MOVES_ALL = (
    "prepare",
    "setup_dataloaders",
    "set_default_device",
    "set_default_tensor_type",
)
MOST_LOOPS = 30  # each may take as long as reading the script once
AROUND_LOADERS = {"DataLoader", "enumerate", "tqdm", "zip", "iter", "len"}
LOSS = re.compile(r"Loss$")
DEVICE = re.compile(r"device|cuda", re.IGNORECASE)
OF_TORCH = re.compile(r"(nn|torch|torchvision|models|timm)\.")
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "perf_counter", "time"}


def hard_coded(script: ParsedScript) -> list[ast.expr]:
    """The calls and values that name CUDA where nothing checks for a device."""
    written: list[ast.expr] = [
        call
        for call in script.calls
        if (callee(call) == "cuda" and isinstance(call.func, ast.Attribute))
        or (callee(call) in ("device", "to") and any(map(is_cuda, call.args)))
        or is_cuda(keyword(call, "device"))
    ]
    written += [
        value
        for name, value, _ in script.assignments
        if is_cuda(value) and "device" in name.lower()
    ]

    def is_asked_for(node: ast.AST) -> bool:
        around = list(script.up(node))
        tests = [e.test for e in around if isinstance(e, ast.If | ast.IfExp)]
        is_tried = any(isinstance(e, ast.Try) and e.handlers for e in around)
        return is_tried or any(GPU.search(ast.unparse(test)) for test in tests)

    # Some scripts write "cuda" first, and change it later:
    # `if not torch.cuda.is_available(): device = "cpu"`.
    changed = {name for name, _, at in script.assignments if name and is_asked_for(at)}
    first = {value for name, value, _ in script.assignments if name in changed}
    return [node for node in written if not (node in first or is_asked_for(node))]


def cuda_written_down(script: ParsedScript) -> Iterator[Problem]:
    """`.cuda()` and `"cuda"` where nothing checks which device is available."""
    if lines := sorted(node.lineno for node in hard_coded(script)):
        times = f" {len(lines)} times" if len(lines) > 1 else ""
        say = (
            f"CUDA is hard-coded{times} in this script, so the script "
            "fails without an NVIDIA or AMD GPU. Choose the device once, "
            "at the top, and write `.to(device)`."
        )
        yield Problem(lines[0], "look", say, "cuda_hard_coded")


def is_cuda(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and str(value.value).startswith("cuda")


def loads_without_place(script: ParsedScript) -> list[ast.Call]:
    """The calls of `torch.load` without `map_location`."""
    return [
        call
        for call in script.all("load")
        if dotted(call.func) == "torch.load"
        and len(call.args) == 1
        and not any(item.arg in ("map_location", None) for item in call.keywords)
    ]


def load_without_place(script: ParsedScript) -> Iterator[Problem]:
    """`torch.load` without `map_location` puts tensors back on their old device."""
    if lines := [call.lineno for call in loads_without_place(script)]:
        times = f" {len(lines)} times" if len(lines) > 1 else ""
        say = (
            f"`torch.load` is called without `map_location`{times}. If "
            "the file was saved from a GPU, loading fails on a machine "
            'without one. Add `map_location="cpu"`, or pass the device '
            "that you use."
        )
        yield Problem(lines[0], "look", say, "cuda_checkpoint")


def code_may_run(script: ParsedScript) -> Iterator[Problem]:
    """With `weights_only=False`, `torch.load` runs code in the file."""
    for call in script.all("load"):
        only = keyword(call, "weights_only")
        allowed = isinstance(only, ast.Constant) and only.value is False
        if dotted(call.func) == "torch.load" and allowed:
            say = words("rules.code_may_run")
            yield Problem(call.lineno, "look", say, "pickle_refused")


def gradients_never_cleared(script: ParsedScript) -> Iterator[Problem]:
    """`backward` and `step` are called, but `zero_grad` isn't."""
    optimizers = {
        name
        for name, value, _ in script.assignments
        if "opt" in f"{name}{script.words_of(value)}".lower()
    }
    steps_in: dict[ast.AST, list[ast.Call]] = defaultdict(list)
    for call in script.all("step"):
        if owner(call) in optimizers or "opt" in owner(call).lower():
            for around in script.up(call):
                steps_in[around].append(call)
    elsewhere = CLEARS.search(script.words) is not None
    clears = cache(lambda place: CLEARS.search(script.words_of(place)) is not None)
    for loop in script.training_loops:
        steps = steps_in[loop]
        if not steps:
            continue
        reached = script.reachable(loop)
        functions = [f for f in script.functions.values() if f.body[0] in reached]
        if not any(map(clears, (script.place(loop), *functions))):
            sureness: Sureness = "likely" if elsewhere else "sure"
            say = words("rules.gradients_never_cleared")
            yield Problem(steps[0].lineno, sureness, say, "no_zero_grad")


def clock_without_waiting(script: ParsedScript) -> Iterator[Problem]:
    """The script reads the clock once the work is queued, not once the work is done."""
    if not ACCELERATOR.search(script.words):
        return
    models = (call for call in script.calls if dotted(call.func) in script.models)
    asks = script.lines_with(chain(models, script.all("backward")))
    waits = script.lines_with(script.all(*WAITS))
    stops = defaultdict[tuple[str, Place], list[ast.BinOp]](list)
    for node in script.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            stops[dotted(node.right), script.place(node)].append(node)
    for name, value, start in script.assignments:
        if not isinstance(value, ast.Call) or dotted(value.func) not in CLOCKS:
            continue
        after = stops[name, script.place(start)]
        index = bisect(after, start.lineno, key=attrgetter("lineno"))
        if index == len(after):
            continue
        stop = after[index]
        # A loop that begins after the start runs to its end between two readings.
        around = (node for node in script.up(stop) if isinstance(node, Located))
        inside = [node for node in around if node.lineno > start.lineno]
        end = max(node.end_lineno or 0 for node in (stop, *inside))
        counts = (bisect(s, end) - bisect(s, start.lineno) for s in (asks, waits))
        if next(counts) and not next(counts):
            say = words("rules.clock_without_waiting")
            yield Problem(stop.lineno, "likely", say, "timing_unsynchronized")


def workers_without_guard(script: ParsedScript) -> Iterator[Problem]:
    """DataLoader workers without the guard `if __name__ == "__main__"`.

    Where processes are spawned, each worker imports the script, which then starts
    workers again.
    """
    if "__main__" in script.words or script.is_notebook:
        return
    loaders = [
        call
        for call in script.all("DataLoader")
        if isinstance(number := keyword(call, "num_workers"), ast.Constant)
        and number.value
    ]
    runs = [
        node
        for node in script.tree.body
        if not hasattr(node, "body") or isinstance(node, Loop | ast.With | ast.If)
    ]
    inside = map(callee, script.reachable(*runs))
    if loaders and "backward" in inside:
        say = words("rules.workers_without_guard")
        yield Problem(loaders[0].lineno, "likely", say)


def batch_not_moved(script: ParsedScript) -> Iterator[Problem]:
    """The model is moved to a device, and what a loader's loop draws for it isn't.

    Silent wherever a move may happen out of sight: in the data set, in what wraps the
    loader, in the model, or in functions of the script that get the batch.
    """
    if any(script.all(*MOVES_ALL)):
        return
    moved = {owner(call) for call in script.all(*MOVES)}
    models = {
        model
        for model, values in script.made.items()
        if {model, *map(dotted, values)} & script.models
        and _is_only_moved_as_a_whole(script, model, moved)
    }
    losses = {
        name for name, value, _ in script.assignments if LOSS.search(callee(value))
    }
    if not models:
        return
    loops = [node for node in script.nodes if isinstance(node, ast.For)]
    for loop in loops[:MOST_LOOPS]:
        if not _draws_from_loader(script, loop):
            continue
        inside = [node for statement in loop.body for node in ast.walk(statement)]
        drawn = names_in(loop.target) - _taken(script, inside)
        calls = [node for node in inside if isinstance(node, ast.Call)]
        calls.sort(key=lambda call: (call.end_lineno, call.end_col_offset))
        for call in calls:  # in the order in which they are made
            if "device" in script.words_of(call):
                continue
            # A model may want some of what else it gets on the CPU, such as lengths.
            if (asked := dotted(call.func)) in models:
                given, slug = call.args[:1], DATA_NOT_MOVED
            elif asked in losses:
                given, slug = call.args[-1:], LABELS_NOT_MOVED
            else:
                continue
            if given and (name := dotted(given[0])) in drawn:
                say = words("rules.batch_not_moved", name=name)
                yield Problem(call.lineno, "likely", say, slug)
                break  # the loop's next error comes once this one is mended


def _is_only_moved_as_a_whole(
    script: ParsedScript, model: str, moved: Set[str]
) -> bool:
    """Whether a model is moved, and its class surely moves nothing that it gets."""
    made = script.origins({model})
    own = [node for node in made if isinstance(node, Place)]
    values = [node for node in made if not isinstance(node, Place)]
    names = {model}.union(*map(names_in, values))
    parts = [part for value in values for part in ast.walk(value)]
    calls = [dotted(part.func) for part in parts if isinstance(part, ast.Call)]
    is_known = any(OF_TORCH.match(name) or name in script.classes for name in calls)
    is_moved = names & moved or _moves(values)
    return bool(is_known and is_moved) and not _moves(own)


def _moves(values: Iterable[ast.AST]) -> bool:
    """Whether code in one of the values moves something, or names a device."""
    parts = [part for value in values for part in ast.walk(value)]
    names = [getattr(part, "arg", dotted(part)) or "" for part in parts]
    return any(callee(part) in MOVES for part in parts) or any(
        map(DEVICE.search, names)
    )


def _draws_from_loader(script: ParsedScript, loop: ast.For) -> bool:
    """Whether a loop goes over a DataLoader whose tensors are surely on the CPU."""
    calls = {callee(part) for part in ast.walk(loop.iter)} - {""}
    if not calls <= AROUND_LOADERS:
        return False
    origins = [loop.iter, *script.origins(names_in(loop.iter))]
    made = {callee(part) for value in origins for part in ast.walk(value)}
    return "DataLoader" in made and not _moves(origins)


def _taken(script: ParsedScript, inside: Sequence[ast.AST]) -> set[str]:
    """The names that a loop assigns, goes over, or hands to the script's functions."""
    taken = set[str]()
    for node in inside:
        if isinstance(getattr(node, "ctx", None), ast.Store):
            taken |= names_in(node)  # `batch["x"] = ...` changes batch, too
        elif isinstance(node, ast.For | ast.comprehension):
            taken |= names_in(node.iter)  # its parts may be moved
        elif isinstance(node, ast.Call) and callee(node) in script.functions:
            taken |= set().union(*map(names_in, node.args))
    return taken


RULES: tuple[Callable[[ParsedScript], Iterator[Problem]], ...] = (
    cuda_written_down,
    load_without_place,
    code_may_run,
    gradients_never_cleared,
    clock_without_waiting,
    workers_without_guard,
    batch_not_moved,
)
