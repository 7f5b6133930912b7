"""What a script may do that is a mistake: the rules.

Each is a function of a script that yields what it finds, and errs on the side of
silence: who is blamed wrongly once does not read the rest.
"""

import ast
import re
from collections.abc import Callable, Iterator

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
    names,
    owner,
    parameters_of,
)
from core.words import Words

words = Words(__file__)

# torch.save of what these give pickles no class, even under the model's own name, as in
# `model = torch.jit.script(model)`.
OF_A_MODEL = {"state_dict", "script", "trace", "freeze", "export"}
EVALUATES = re.compile(r"(?<![a-z])(test|val|valid|validation|eval|dev)", re.IGNORECASE)
EVALUATION = re.compile(  # as a word of its own
    r"(?<![a-z])(test|val|valid(ate|ation)?|eval(uate|uation)?)(?![a-z])",
    re.IGNORECASE,
)
CLEARS = re.compile(r"zero_grad|clear_grad|\bgrad\b|zero_grads")
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "perf_counter", "time"}


# Which device, and what is saved and loaded


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
    # Only likely: other objects may have parameters too.
    asked = (name for call in script.calls for name in parameters_of(call))
    modules: dict[str, Sureness] = dict.fromkeys(asked, "likely")
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


# The loss, the gradients, the modes of a model, clocks, waits and workers


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
            elsewhere = CLEARS.search(script.words)
            sureness: Sureness = "likely" if elsewhere else "sure"
            say = words("rules.gradients_never_cleared")
            yield Finding(steps[0].lineno, sureness, say, "no_zero_grad")


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
    if asked := next(_evaluations(script), None):
        say = words("rules.training_mode_in_evaluation")
        yield Finding(asked.lineno, "sure" if modes else "look", say, "no_eval_mode")


def gradients_in_evaluation(script: Script) -> Iterator[Finding]:
    """Autograd records what nothing goes backward through."""
    if NO_GRADIENTS.search(script.words) or "volatile" in script.words:
        return
    if asked := next(_evaluations(script), None):
        yield Finding(asked.lineno, "sure", words("rules.gradients_in_evaluation"))


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


RULES: tuple[Callable[[Script], Iterator[Finding]], ...] = (
    cuda_written_down,
    load_without_place,
    code_may_run,
    whole_model_saved,
    softmax_before_loss,
    gradients_never_cleared,
    optimizer_of_another_model,
    training_mode_in_evaluation,
    gradients_in_evaluation,
    training_mode_not_restored,
    clock_without_waiting,
    workers_without_guard,
)
