"""Rules on the loss, the gradients, and the modes of training and evaluation."""

import ast
import re
from collections.abc import Iterator

from core.mistakes.script.finding import Finding, Sureness
from core.mistakes.script.reading import (
    Loop,
    Script,
    called,
    calls,
    dotted,
    losses,
    names,
    owner,
    parameters_of,
    words,
)

EVALUATES = re.compile(r"(?<![a-z])(test|val|valid|validation|eval|dev)", re.IGNORECASE)

EVALUATION = re.compile(  # as a word of its own
    r"(?<![a-z])(test|val|valid(ate|ation)?|eval(uate|uation)?)(?![a-z])",
    re.IGNORECASE,
)


def softmax_before_loss(script: Script) -> Iterator[Finding]:
    """`CrossEntropyLoss` is given probabilities, where it wants logits."""
    for loss in script.cross_entropies:
        given = loss.args[0]
        for made in [given, *script.values_before(given, loss)]:
            if called(made) in ("softmax", "Softmax") or _is_softmax(script, made):
                say = (
                    "Cross entropy applies softmax itself, and here it is applied "
                    f"before line {loss.lineno}. Give the loss the logits."
                )
                yield Finding(made.lineno, "sure", say, "softmax_before_loss")
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
    say = (
        "This model ends in softmax, and the script uses a cross entropy, which "
        "applies softmax itself. Let the model return logits."
    )
    trained = {
        script.makes_model(value)
        for name, value, _ in script.assigned
        if name in script.models
    }
    for kind in trained & set(script.classes):
        for each in ast.walk(script.classes[kind]):
            if not isinstance(each, ast.Return) or each.value is None:
                continue
            if getattr(script.place(each), "name", "") != "forward":
                continue
            for made in _made(script, each.value, each):
                softmax = called(made) == "softmax" or _is_softmax(script, made)
                # Whoever returns the logits as well gives those to the loss.
                several = isinstance(each.value, ast.Tuple)
                logits_too = several and names(each.value) & _given(made)
                if softmax and not logits_too:
                    yield Finding(made.lineno, "likely", say, "softmax_before_loss")
    for name, value, _ in script.assigned:
        if name in script.models and "." not in name and _ends_with_softmax(value):
            yield Finding(value.lineno, "likely", say, "softmax_before_loss")


def _given(call: ast.expr) -> set[str]:
    """The names that a call is given."""
    return {dotted(each) for each in getattr(call, "args", ())} - {""}


def _made(
    script: Script, value: ast.expr, use: ast.stmt | ast.expr
) -> Iterator[ast.expr]:
    """What is returned, also as one of several, and what that was assigned last."""
    for each in value.elts if isinstance(value, ast.Tuple) else [value]:
        yield each
        yield from script.values_before(each, use)


def _ends_with_softmax(value: ast.AST) -> bool:
    """Whether a Softmax is made, or a Sequential with one at its end."""
    if not isinstance(value, ast.Call) or called(value) != "Sequential":
        return called(value) == "Softmax"
    return bool(value.args) and called(value.args[-1]) == "Softmax"


def graph_kept(script: Script) -> Iterator[Finding]:
    """`total += loss` keeps what autograd recorded, of every step."""
    for loop in script.training_loops:
        backward = losses(loop)
        for each in script.in_every_turn(loop):
            kept = ""
            if isinstance(each, ast.AugAssign) and isinstance(each.op, ast.Add):
                bare = _bare(each.value)
                kept = dotted(each.target) if bare in backward else ""
            elif called(each) == "append" and isinstance(each, ast.Call) and each.args:
                kept = owner(each) if dotted(each.args[0]) in backward else ""
            if kept and kept not in backward:
                say = (
                    f"`{kept}` keeps the graph of every step, so memory keeps growing. "
                    "Write `loss.detach()`: the number without its history."
                )
                yield Finding(each.lineno, "sure", say, "item_every_step")


def _bare(value: ast.expr) -> str:
    """The tensor of `loss` and of `loss * n`."""
    return dotted(value.left if isinstance(value, ast.BinOp) else value)


def gradients_never_cleared(script: Script) -> Iterator[Finding]:
    """`backward` and `step`, and no `zero_grad`."""
    clears = re.compile(r"zero_grad|clear_grad|\bgrad\b|zero_grads")
    for loop in script.training_loops:
        steps = [
            each
            for each in calls(loop, "step")
            if owner(each) in script.optimizers or "opt" in owner(each).lower()
        ]
        if not steps:
            continue
        whole = script.place(loop)
        places = (whole, *_called(script, loop))
        cleared = any(clears.search(script.words_of(each)) for each in places)
        if not cleared:
            sure = not clears.search(script.words)
            say = (
                "Gradients add up from step to step: call `zero_grad()` on the "
                "optimizer before `backward()`."
            )
            level: Sureness = "sure" if sure else "likely"
            yield Finding(steps[0].lineno, level, say, "no_zero_grad")


def _called(script: Script, node: ast.AST) -> list[ast.AST]:
    """The functions of the script that are called in a node, and from there."""
    reached = script.reached(node)
    return [each for each in script.functions.values() if each.body[0] in reached]


def optimizer_of_another_model(script: Script) -> Iterator[Finding]:
    """The model is made anew, and the optimizer still has the old one's parameters."""
    for optimizer in script.optimizers.values():
        place = script.place(optimizer)
        for model in parameters_of(optimizer):
            for name, value, statement in script.assigned:
                fresh = script.makes_model(value) and model not in names(value)
                after = statement.lineno > optimizer.lineno
                if name != model or not fresh or not after:
                    continue
                if script.place(statement) != place or script.around(statement):
                    continue
                later = [n for n in script.nodes if n.lineno > statement.lineno]
                built = (each.lineno for each in script.optimizers.values())
                if any(line > statement.lineno for line in built):
                    continue
                if any(called(each) == "step" for each in later):
                    yield Finding(
                        statement.lineno,
                        "sure",
                        f"`{model}` is a new model here, and the optimizer of line "
                        f"{optimizer.lineno} goes on with the old one. Make the model, "
                        "move it, and then build the optimizer.",
                    )


def _evaluations(script: Script) -> Iterator[Loop | ast.Call]:
    """Where a model is asked about a test or validation set, and nothing goes backward.

    Loops over such a set, or in a function with such a name; and a model that is asked
    about a whole one at once, behind the loop that trains it.
    """
    for loop in script.loops:
        if not isinstance(loop, ast.For) or script.reaches(loop, "backward", "grad"):
            continue
        asks = any(dotted(each.func) in script.models for each in calls(loop))
        within = getattr(script.place(loop), "name", "")
        if asks and (EVALUATES.search(words(loop.iter)) or EVALUATION.search(within)):
            yield loop
    trained = min((each.lineno for each in script.training_loops), default=None)
    for call in script.calls:
        alone = dotted(call.func) in script.models and script.around(call) is None
        given = " ".join(map(words, call.args))
        if alone and trained and call.lineno > trained and EVALUATION.search(given):
            yield call


def training_mode_in_evaluation(script: Script) -> Iterator[Finding]:
    """No `model.eval()` anywhere, and a loop over test data."""
    if any(script.all("eval")) or re.search(r"\btraining\b", script.words):
        return
    modes = re.search(r"dropout|batch_?norm|models\b", script.words, re.IGNORECASE)
    for loop in _evaluations(script):
        say = (
            "Call `model.eval()` before this: dropout and batch norm go on as in "
            "training without it."
        )
        yield Finding(loop.lineno, "sure" if modes else "look", say, "no_eval_mode")
        return


def gradients_in_evaluation(script: Script) -> Iterator[Finding]:
    """Autograd records what nobody goes backward through."""
    if re.search(r"no_grad|inference_mode|set_grad_enabled|volatile", script.words):
        return
    for loop in _evaluations(script):
        say = (
            "Autograd records this for a backward pass that never comes, and takes "
            "memory for it. Put it under `with torch.inference_mode():`."
        )
        yield Finding(loop.lineno, "sure", say)
        return


def training_mode_not_restored(script: Script) -> Iterator[Finding]:
    """`model.eval()` in the loop over epochs, and no `model.train()` in it."""
    for loop in script.loops:
        inner = [each for each in script.training_loops if each is not loop]
        reached = script.reached(loop)
        trains = any(each in reached for each in inner)
        modes = [e for e in reached if isinstance(e, ast.Call) and owner(e)]
        evaluates = [each for each in modes if called(each) == "eval"]
        restored = any(called(each) == "train" for each in modes)
        if trains and evaluates and not restored:
            say = (
                "After the first epoch the model stays in evaluation mode: dropout is "
                "off and batch norm learns no more. Call `model.train()` at the start "
                "of every epoch."
            )
            line = evaluates[0].lineno
            yield Finding(line, "sure", say, "no_eval_mode")
            return
