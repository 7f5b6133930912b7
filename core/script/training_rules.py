"""Rules on the loss, the gradients, the modes of a model, clocks, waits and workers."""

import ast
import re
from collections.abc import Iterator

from core.script.syntax import (
    ACCELERATOR,
    GPU,
    NO_GRADIENTS,
    WAITS,
    Finding,
    Loop,
    Script,
    Sureness,
    called,
    calls,
    dotted,
    identifiers,
    keyword,
    losses,
    names,
    owner,
    parameters_of,
)
from core.words import Words

words = Words(__file__)

EVALUATES = re.compile(r"(?<![a-z])(test|val|valid|validation|eval|dev)", re.IGNORECASE)
EVALUATION = re.compile(  # as a word of its own
    r"(?<![a-z])(test|val|valid(ate|ation)?|eval(uate|uation)?)(?![a-z])",
    re.IGNORECASE,
)
CLEARS = re.compile(r"zero_grad|clear_grad|\bgrad\b|zero_grads")
PRINTS = ("print", "float", "set_description", "set_postfix")
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "perf_counter", "time"}


def softmax_before_loss(script: Script) -> Iterator[Finding]:
    """`CrossEntropyLoss` is given probabilities, where it wants logits."""
    for loss in script.cross_entropies:
        given = loss.args[0]
        for value in [given, *script.values_before(given, loss)]:
            if called(value) in ("softmax", "Softmax") or _is_softmax(script, value):
                say = words("rules.softmax_before_loss", line=loss.lineno)
                yield Finding(value.lineno, "sure", say, "softmax_before_loss")
    if script.cross_entropies:
        yield from _softmax_at_the_end(script)


def _is_softmax(script: Script, value: ast.AST) -> bool:
    """Whether a layer is called that is a Softmax, or one made on the spot."""
    if not isinstance(value, ast.Call):
        return False
    layers = {
        name
        for name, made, _ in script.assigned
        if _ends_with_softmax(made)
        # Of a whole model it is said once, where it is made.
        and ("." in name or name not in script.models)
    }
    return called(value.func) == "Softmax" or dotted(value.func) in layers


def _softmax_at_the_end(script: Script) -> Iterator[Finding]:
    """A model that ends with softmax, and is trained with a cross entropy."""
    say = words("rules.softmax_at_the_end")
    trained = {
        script.makes_model(value)
        for name, value, _ in script.assigned
        if name in script.models
    }
    for kind in trained & set(script.classes):
        for node in ast.walk(script.classes[kind]):
            if not isinstance(node, ast.Return) or node.value is None:
                continue
            if getattr(script.place(node), "name", "") != "forward":
                continue
            returned = node.value
            several = isinstance(returned, ast.Tuple)
            parts = returned.elts if isinstance(returned, ast.Tuple) else [returned]
            made = [v for part in parts for v in script.values_before(part, node)]
            for value in parts + made:
                softmax = called(value) == "softmax" or _is_softmax(script, value)
                # A model that returns the logits as well gives those to the loss.
                given = set(map(dotted, getattr(value, "args", ()))) - {""}
                if softmax and not (several and names(returned) & given):
                    yield Finding(value.lineno, "likely", say, "softmax_before_loss")
    for name, value, _ in script.assigned:
        if name in script.models and "." not in name and _ends_with_softmax(value):
            yield Finding(value.lineno, "likely", say, "softmax_before_loss")


def _ends_with_softmax(value: ast.AST) -> bool:
    """Whether a Softmax is made, or a Sequential with one at its end."""
    if not isinstance(value, ast.Call) or called(value) != "Sequential":
        return called(value) == "Softmax"
    return bool(value.args) and called(value.args[-1]) == "Softmax"


def graph_kept(script: Script) -> Iterator[Finding]:
    """`total += loss` keeps what autograd recorded, of every step."""
    for loop in script.training_loops:
        backward = losses(loop)
        for node in script.in_every_turn(loop):
            name = ""
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                value = node.value  # `loss`, or `loss * n`
                bare = dotted(value.left if isinstance(value, ast.BinOp) else value)
                name = dotted(node.target) if bare in backward else ""
            elif called(node) == "append" and isinstance(node, ast.Call) and node.args:
                name = owner(node) if dotted(node.args[0]) in backward else ""
            if name and name not in backward:
                say = words("rules.graph_kept", name=name)
                yield Finding(node.lineno, "sure", say, "item_every_step")


def gradients_never_cleared(script: Script) -> Iterator[Finding]:
    """`backward` and `step`, and no `zero_grad`."""
    for loop in script.training_loops:
        steps = [
            call
            for call in calls(loop, "step")
            if owner(call) in script.optimizers or "opt" in owner(call).lower()
        ]
        if not steps:
            continue
        reached = script.reached(loop)
        functions = [f for f in script.functions.values() if f.body[0] in reached]
        places = (script.place(loop), *functions)
        if not any(CLEARS.search(script.words_of(place)) for place in places):
            sure = not CLEARS.search(script.words)
            say = words("rules.gradients_never_cleared")
            level: Sureness = "sure" if sure else "likely"
            yield Finding(steps[0].lineno, level, say, "no_zero_grad")


def optimizer_of_another_model(script: Script) -> Iterator[Finding]:
    """The model is made anew, and the optimizer still has the old one's parameters."""
    last = max((o.lineno for o in script.optimizers.values()), default=0)
    for optimizer in script.optimizers.values():
        for model in parameters_of(optimizer):
            for name, value, statement in script.assigned:
                line = statement.lineno
                fresh = script.makes_model(value) and model not in names(value)
                if name != model or not fresh or line <= optimizer.lineno:
                    continue
                if script.place(statement) != script.place(optimizer):
                    continue
                if script.around(statement) or last > line:  # another one is built
                    continue
                if any(call.lineno > line for call in script.all("step")):
                    say = words(
                        "rules.optimizer_of_another_model",
                        model=model,
                        line=optimizer.lineno,
                    )
                    yield Finding(line, "sure", say)


def _evaluations(script: Script) -> Iterator[Loop | ast.Call]:
    """Where a model is asked about a test or validation set, and nothing goes backward.

    Loops over such a set, or in a function with such a name; and a model that is asked
    about a whole one at once, behind the loop that trains it.
    """
    for loop in script.loops:
        if not isinstance(loop, ast.For) or script.reaches(loop, "backward", "grad"):
            continue
        asks = any(dotted(call.func) in script.models for call in calls(loop))
        within = getattr(script.place(loop), "name", "")
        if asks and (
            EVALUATES.search(identifiers(loop.iter)) or EVALUATION.search(within)
        ):
            yield loop
    trained = min((loop.lineno for loop in script.training_loops), default=None)
    for call in script.calls:
        alone = dotted(call.func) in script.models and script.around(call) is None
        given = " ".join(map(identifiers, call.args))
        if alone and trained and call.lineno > trained and EVALUATION.search(given):
            yield call


def training_mode_in_evaluation(script: Script) -> Iterator[Finding]:
    """No `model.eval()` anywhere, and a loop over test data."""
    if any(script.all("eval")) or re.search(r"\btraining\b", script.words):
        return
    modes = re.search(r"dropout|batch_?norm|models\b", script.words, re.IGNORECASE)
    for loop in _evaluations(script):
        say = words("rules.training_mode_in_evaluation")
        yield Finding(loop.lineno, "sure" if modes else "look", say, "no_eval_mode")
        return


def gradients_in_evaluation(script: Script) -> Iterator[Finding]:
    """Autograd records what nothing goes backward through."""
    if NO_GRADIENTS.search(script.words) or "volatile" in script.words:
        return
    for loop in _evaluations(script):
        yield Finding(loop.lineno, "sure", words("rules.gradients_in_evaluation"))
        return


def training_mode_not_restored(script: Script) -> Iterator[Finding]:
    """`model.eval()` in the loop over epochs, and no `model.train()` in it."""
    for loop in script.loops:
        reached = script.reached(loop)
        trains = any(e in reached for e in script.training_loops if e is not loop)
        modes = [e for e in reached if isinstance(e, ast.Call) and owner(e)]
        evaluates = [call for call in modes if called(call) == "eval"]
        restored = any(called(call) == "train" for call in modes)
        if trains and evaluates and not restored:
            say = words("rules.training_mode_not_restored")
            yield Finding(evaluates[0].lineno, "sure", say, "no_eval_mode")
            return


def waits_in_every_step(script: Script) -> Iterator[Finding]:
    """`.item()` and its like, in each turn of a training loop."""
    if not GPU.search(script.words):  # on the CPU alone it costs nothing
        return
    for loop in script.training_loops:
        backward = losses(loop)
        for node in script.in_every_turn(loop):
            name = called(node)
            printed = name in PRINTS and names(node) & backward
            if name in WAITS or printed:
                call = name if printed else f".{name}"
                say = words("rules.waits_in_every_step", call=call)
                yield Finding(node.lineno, "look", say, "item_every_step")
                break


def clock_without_waiting(script: Script) -> Iterator[Finding]:
    """The clock is read when the work is queued, not when it is done."""
    if not ACCELERATOR.search(script.words):
        return
    for name, value, start in script.assigned:
        if not isinstance(value, ast.Call) or dotted(value.func) not in CLOCKS:
            continue
        stops = (
            node.lineno
            for node in script.nodes
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and dotted(node.right) == name
            and node.lineno > start.lineno
            and script.place(node) == script.place(start)
        )
        stop = next(stops, 0)
        between = [n for n in script.nodes if start.lineno < n.lineno <= stop]
        inside = [node for around in between for node in script.reached(around)]
        asks = any(
            isinstance(node, ast.Call)
            and (dotted(node.func) in script.models or called(node) == "backward")
            for node in inside
        )
        waits = {"synchronize", "elapsed_time", *WAITS}
        if asks and not any(called(node) in waits for node in inside):
            say = words("rules.clock_without_waiting")
            yield Finding(stop, "likely", say, "timing_unsynchronized")


def workers_without_guard(script: Script) -> Iterator[Finding]:
    """Workers that import the script, which starts workers, which import it ..."""
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
    if loaders and any(script.reaches(node, "backward") for node in runs):
        say = words("rules.workers_without_guard")
        yield Finding(loaders[0].lineno, "likely", say)
