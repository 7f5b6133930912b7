"""Rules on what is written to files and read from them, as pickles are.

They err on the side of silence, as all rules do.
"""

import ast
from collections.abc import Iterator

from core.mistakes.script.finding import Finding, Sureness
from core.mistakes.script.reading import Script, called, dotted, keyword, parameters_of

# What may have the name of the model that it was made of, and is no pickle of a class.
OF_A_MODEL = {"state_dict", "script", "trace", "freeze", "export"}


def code_may_run(script: Script) -> Iterator[Finding]:
    """`torch.load` runs what a pickle tells it to, where it is allowed to."""
    for call in script.all("load"):
        only = keyword(call, "weights_only")
        allowed = isinstance(only, ast.Constant) and only.value is False
        if dotted(call.func) == "torch.load" and allowed:
            say = (
                "With `weights_only=False`, loading runs any code that is in the file: "
                "fine with a file of your own, never with a stranger's. A `state_dict` "
                "loads without it."
            )
            yield Finding(call.lineno, "look", say, "pickle_refused")


def whole_model_saved(script: Script) -> Iterator[Finding]:
    """`torch.save(model, ...)`, also as one of the things in a checkpoint."""
    known = _modules(script)
    for call in script.all("save"):
        if dotted(call.func) != "torch.save":
            continue
        given = call.args[0] if call.args else keyword(call, "obj")
        parts = given.values if isinstance(given, ast.Dict) else [given]
        for name in filter(known.get, map(dotted, parts)):
            say = (
                f"This pickles `{name}` itself. It loads only beside the code of its "
                "class, and by default torch 2.6 and later refuse to. Save "
                f"`{name}.state_dict()`."
            )
            yield Finding(call.lineno, known[name], say, "pickle_refused")


def _modules(script: Script) -> dict[str, Sureness]:
    """The names of modules: made here, or asked for parameters, which others may be."""
    found: dict[str, Sureness] = {}
    for call in script.calls:
        found.update(dict.fromkeys(parameters_of(call), "likely"))
    for name, value, _ in script.assigned:
        if script.makes_model(value):
            found[name] = "sure"
    for name, value, _ in script.assigned:
        if called(value) in OF_A_MODEL:
            found.pop(name, None)
    return found
