"""A training script as it is read: its names, its loops, and what a rule finds there.

It is parsed and never run, nor is anything that it imports. So all that is known is how
it is written: a model is what a model's class was called for, or what is asked for its
parameters.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

MAGIC = re.compile(r"^(\s*)(?:[!%?]|\w+ *= *[!%]).*$", re.MULTILINE)
NOTEBOOK = re.compile(r'^\s*\{.*"cells"\s*:\s*\[', re.DOTALL)
MOST_BYTES = 200_000
OPTIMIZERS = frozenset(
    """
    Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD LBFGS Muon NAdam RAdam RMSprop
    Rprop SGD SparseAdam
    """.split()  # noqa: SIM905
)
KEEPS_MODEL = {"to", "cuda", "cpu", "float", "half", "double", "train", "eval"}
ASKS_MODEL = {"parameters", "named_parameters", "eval", "modules", "zero_grad"}
WAITS = ("item", "tolist", "cpu")
GPU = re.compile(r"cuda|gpu|accelerator|is_available|device", re.IGNORECASE)
ACCELERATOR = re.compile(r"cuda|accelerator|mps|xpu")
NO_GRADIENTS = re.compile(r"no_grad|inference_mode|set_grad_enabled")

Located = ast.stmt | ast.expr
Loop = ast.For | ast.While
Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class UnreadableError(ValueError):
    """The text is no Python that can be read; says why in a sentence."""


Sureness = Literal["sure", "likely", "look"]


@dataclass(frozen=True)
class Finding:
    """A line, how sure it is that it is a mistake, and what to do."""

    line: int
    sureness: Sureness
    say: str
    slug: str = ""  # names the mistake in the catalogue


def parse(text: str) -> tuple[ast.Module, bool]:
    """The syntax tree of a script, and whether it was the cells of a notebook."""
    text = text.removeprefix("\ufeff")
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise UnreadableError(
            f"The script has more than {MOST_BYTES // 1000} KB. Paste the file with "
            "the training loop alone."
        )
    if NOTEBOOK.match(text):
        raise UnreadableError(
            "This is the file of a notebook. Paste its cells, or save it as a script."
        )
    try:
        with suppress(SyntaxError):
            return ast.parse(text), False
        return ast.parse(MAGIC.sub(r"\1pass", text)), True
    except SyntaxError as error:
        what = error.msg.partition(". Did you mean")[0]
        where = f"Line {error.lineno}" if error.lineno else "It"
        raise UnreadableError(f"{where} can't be read as Python 3: {what}.") from None
    except (RecursionError, MemoryError, ValueError):
        raise UnreadableError(
            "The script can't be read: something in it is nested too deeply, or is no "
            "text."
        ) from None


def dotted(node: ast.AST | None) -> str:
    """ "torch.nn.Linear" of such an expression; "" of any other."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def called(node: ast.AST | None) -> str:
    """The last word of what is called: "to" of `model.to(device)`; "" of no call."""
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def owner(call: ast.Call) -> str:
    """Whose method is called: "model" of `model.to(device)`."""
    return dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""


def calls(node: ast.AST, *names: str) -> Iterator[ast.Call]:
    """All calls in it, or those of such names."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and (not names or called(call) in names):
            yield call


def names(node: ast.AST) -> set[str]:
    """All names in it, with those of attributes: {"self", "self.net", "x"}."""
    return {dotted(part) for part in ast.walk(node)} - {""}


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The argument of that name."""
    return next((given.value for given in call.keywords if given.arg == name), None)


def parameters_of(optimizer: ast.Call) -> set[str]:
    """The models whose parameters an optimizer is given."""
    return {owner(call) for call in calls(optimizer, "parameters")} - {""}


def identifiers(node: ast.AST) -> str:
    """All its identifiers and strings, in one text to search in."""
    fields = ("id", "attr", "arg", "value", "name", "module")
    found = (getattr(part, field, None) for part in ast.walk(node) for field in fields)
    return " ".join(word for word in found if isinstance(word, str))


class Script:
    """A parsed script, and what its names stand for as far as can be told."""

    def __init__(self, text: str) -> None:
        self.tree, self.is_notebook = parse(text)
        self.nodes = sorted(
            (node for node in ast.walk(self.tree) if isinstance(node, Located)),
            key=lambda node: (node.lineno, node.col_offset),
        )
        self.parents = {
            child: node
            for node in ast.walk(self.tree)
            for child in ast.iter_child_nodes(node)
        }
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        self.words = identifiers(self.tree)
        self.words_of = cache(identifiers)

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """What it stands in, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield (node := parent)

    def place(self, node: ast.AST) -> Place:
        """The function that it stands in, else the class or the module."""
        return next(around for around in self.up(node) if isinstance(around, Place))

    def all(self, *names: str) -> Iterator[ast.Call]:
        """All calls of such names, in the order of the lines."""
        return (call for call in self.calls if called(call) in names)

    @cached_property
    def assigned(self) -> list[tuple[str, ast.expr, ast.stmt]]:
        """Each name that is given a value, the value, and where that is done."""
        found: list[tuple[str, ast.expr, ast.stmt]] = []
        targets: list[ast.expr]
        for node in self.nodes:
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            else:
                continue
            for target in targets:
                pairs = [(target, value)]
                if isinstance(target, ast.Tuple):
                    values = [value] * len(target.elts)
                    if isinstance(value, ast.Tuple):
                        values = value.elts + values[len(value.elts) :]
                    pairs = list(zip(target.elts, values, strict=False))
                found += [(dotted(a), b, node) for a, b in pairs if dotted(a)]
        return found

    def values_before(self, given: ast.expr, use: Located) -> list[ast.expr]:
        """What a name was assigned last before it is used, in the same function."""
        name, place = dotted(given), self.place(use)
        values = [
            value
            for assigned, value, statement in self.assigned
            if assigned == name != ""
            and (statement.end_lineno or 0) < use.lineno
            and self.place(statement) == place
        ]
        return values[-1:]

    @cached_property
    def functions(self) -> dict[str, Function]:
        """The functions and methods of the script, by their names."""
        return {node.name: node for node in self.nodes if isinstance(node, Function)}

    def reached(self, node: ast.AST) -> list[ast.AST]:
        """All that is in a node, and in the functions of the script it calls."""
        found: list[ast.AST] = []
        waiting, seen = [node], {node}
        while waiting:
            inside = list(ast.walk(waiting.pop()))
            found += inside
            for part in inside:
                known = isinstance(part, ast.Call) and owner(part) in ("", "self")
                function = self.functions.get(called(part)) if known else None
                if function is not None and function not in seen:
                    seen.add(function)
                    waiting.append(function)
        return found

    def reaches(self, node: ast.AST, *names: str) -> bool:
        """Whether one of those is called in the node, or in what it calls."""
        return any(called(part) in names for part in self.reached(node))

    # What names stand for

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The script's own modules."""
        found: dict[str, ast.ClassDef] = {}
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                bases = {dotted(base).rpartition(".")[2] for base in node.bases}
                if any(base.endswith("Module") or base in found for base in bases):
                    found[node.name] = node
        return found

    def makes_model(self, value: ast.AST) -> str:
        """The class or function that makes a model there; "" where none does."""
        while called(value) in KEEPS_MODEL and isinstance(value, ast.Call):
            value = getattr(value.func, "value", value.func)
        kind = called(value)
        whole = dotted(value.func) if isinstance(value, ast.Call) else ""
        known = kind in self.classes or kind == "Sequential"
        return kind if known or "models." in whole or kind == "create_model" else ""

    @cached_property
    def models(self) -> set[str]:
        """The names of models."""
        made = {name for name, value, _ in self.assigned if self.makes_model(value)}
        return made | {owner(call) for call in self.all(*ASKS_MODEL) if not call.args}

    @cached_property
    def optimizers(self) -> dict[str, ast.Call]:
        """The optimizers that are built, by their names."""
        return {
            name: value
            for name, value, _ in self.assigned
            if isinstance(value, ast.Call)
            and (called(value) in OPTIMIZERS or ".optim." in f".{dotted(value.func)}")
            and "scheduler" not in dotted(value.func)
        }

    @cached_property
    def cross_entropies(self) -> list[ast.Call]:
        """The calls that compute a cross entropy, of logits as their first argument."""
        losses = {n for n, v, _ in self.assigned if called(v) == "CrossEntropyLoss"}
        return [
            call
            for call in self.calls
            if call.args
            and (
                called(call) == "cross_entropy"
                or called(call.func) == "CrossEntropyLoss"
                or dotted(call.func) in losses
            )
        ]

    # Loops

    @cached_property
    def loops(self) -> list[Loop]:
        return [node for node in self.nodes if isinstance(node, Loop)]

    def around(self, node: ast.AST) -> Loop | None:
        """The nearest loop around it, in its own function."""
        for around in self.up(node):
            if isinstance(around, Loop):
                return around
            if isinstance(around, Function):
                return None
        return None

    @cached_property
    def training_loops(self) -> list[Loop]:
        """The loops whose every turn goes backward once, the innermost ones."""
        found = [self.around(call) for call in self.all("backward")]
        return list(dict.fromkeys(loop for loop in found if loop is not None))
