"""A parsed training script: its names, its loops, and what a rule finds in it.

Neither the script nor anything that it imports is run, so only its text is known. For
example, a variable counts as a model if the script calls its method `parameters`.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from to_device.dryrun.script import without_magic

NOTEBOOK = re.compile(r'\s*+\{.*"cells"\s*+:\s*+\[', re.DOTALL)
MOST_BYTES = 200_000
ASKS_MODEL = ("parameters", "named_parameters", "eval", "modules", "zero_grad")

Located = ast.stmt | ast.expr
Loop = ast.For | ast.While
Import = ast.Import | ast.ImportFrom
Function = ast.FunctionDef | ast.AsyncFunctionDef
Place = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class UnreadableError(ValueError):
    """Says in a sentence why the text can't be read as Python."""


Sureness = Literal["sure", "likely", "look"]


@dataclass(frozen=True)
class Problem:
    line: int
    sureness: Sureness
    say: str
    slug: str = ""  # the slug of the mistake in the lesson Mistakes; "" for none


def parse(text: str) -> tuple[ast.Module, bool]:
    """The syntax tree of a script, and whether it came from a notebook's cells."""
    text = text.removeprefix("\ufeff")
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise UnreadableError(
            f"The script is larger than {MOST_BYTES // 1000} KB. Paste only the file "
            "that contains the training loop."
        )
    if NOTEBOOK.match(text):
        raise UnreadableError(
            "This is a notebook file. Paste the code of its cells, or export the "
            "notebook as a script."
        )
    try:
        code = without_magic(text)
        return ast.parse(code), code != text
    except SyntaxError as error:
        problem = error.msg.partition(". Did you mean")[0]
        place = f"Line {error.lineno}" if error.lineno else "The script"
        message = f"{place} can't be read as Python 3: {problem}."
        raise UnreadableError(message) from None
    except (RecursionError, MemoryError, ValueError):
        raise UnreadableError(
            "The script can't be read: it isn't text, or its code is nested too deeply."
        ) from None


def dotted(node: ast.AST | None) -> str:
    """The text of a name or an attribute, such as "torch.nn.Linear"; otherwise ""."""
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def callee(node: ast.AST | None) -> str:
    """The name of the called function or method: "to" for `model.to(device)`.

    The name is "" if the node is not a call.
    """
    function = node.func if isinstance(node, ast.Call) else None
    return str(getattr(function, "attr", getattr(function, "id", "")))


def owner(call: ast.Call) -> str:
    """The object whose method is called: "model" for `model.to(device)`."""
    return dotted(getattr(call.func, "value", None))


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((item.value for item in call.keywords if item.arg == name), None)


class ParsedScript:
    """A parsed script, and what its names stand for, as far as we can tell."""

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
        self.words_of = cache(ast.unparse)
        self.words = self.words_of(self.tree)

    def up(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while (parent := self.parents.get(node)) is not None:
            yield (node := parent)

    def place(self, node: ast.AST) -> Place:
        """The function, class, or module that most closely surrounds a node."""
        return next(around for around in self.up(node) if isinstance(around, Place))

    def all(self, *names: str) -> Iterator[ast.Call]:
        return (call for call in self.calls if callee(call) in names)

    @cached_property
    def assignments(self) -> list[tuple[str, ast.expr, ast.stmt]]:
        """Each name that is assigned a value, the value, and the statement."""
        return [
            (dotted(target), node.value, node)
            for node in self.nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
        ]

    @cached_property
    def made(self) -> Mapping[str, Sequence[ast.AST]]:
        """For each name, what it is assigned or passed as a parameter, or its body."""
        made = defaultdict[str, list[ast.AST]](list)
        for name, value, _ in self.assignments:
            made[name].append(value)
        for node in self.nodes:
            if isinstance(node, Function | ast.ClassDef):
                made[node.name].append(node)
        for call in self.calls:
            function = self.functions.get(dotted(call.func))
            names = [arg.arg for arg in function.args.args] if function else []
            passed = [
                *zip(names, call.args, strict=False),
                *((item.arg or "", item.value) for item in call.keywords),
            ]
            for name, value in passed if function else ():
                made[name].append(value)
        return made

    @cached_property
    def classes(self) -> set[str]:
        return {node.name for node in self.nodes if isinstance(node, ast.ClassDef)}

    def origins(self, names: Set[str]) -> list[ast.AST]:
        """What the names were made from, and what the names in that were, in turn."""
        names, found, seen = set(names), list[ast.AST](), set[str]()
        while new := names - seen:
            seen |= new
            made = [node for name in new for node in self.made.get(name, ())]
            names = set().union(*map(names_in, made))
            found += made
        return found

    @cached_property
    def functions(self) -> dict[str, Function]:
        return {node.name: node for node in self.nodes if isinstance(node, Function)}

    def called(self, node: ast.AST) -> Function | None:
        """The script's function that a node calls."""
        if isinstance(node, ast.Call) and owner(node) in ("", "self"):
            return self.functions.get(callee(node))
        return None

    def reachable(self, *nodes: ast.AST) -> list[ast.AST]:
        """All nodes inside some and inside the script's functions that they call."""
        inside: list[ast.AST] = []
        places = dict.fromkeys(nodes)
        todo = [*places]
        for place in todo:  # the loop adds the functions that these places call
            for part in ast.walk(place):
                inside.append(part)
                function = self.called(part)
                if function is not None and function not in places:
                    places[function] = None
                    todo.append(function)
        return inside

    def lines_with(self, calls: Iterable[ast.Call]) -> list[int]:
        """The lines with one of these calls, or that call a function with one."""
        callers = defaultdict[ast.AST | None, list[ast.Call]](list)
        for call in self.calls:
            callers[self.called(call)].append(call)
        found = dict.fromkeys(calls)
        todo = [*found]
        for call in todo:  # the loop adds the calls of the functions around these calls
            for around in self.up(call):
                for caller in callers.pop(around, ()):
                    if caller not in found:
                        found[caller] = None
                        todo.append(caller)
        return sorted(call.lineno for call in found)

    @cached_property
    def models(self) -> set[str]:
        """The variables on which the script calls a method that models have."""
        return {owner(call) for call in self.all(*ASKS_MODEL) if not call.args} - {""}

    @cached_property
    def training_loops(self) -> list[Loop]:
        """The innermost loop around each `backward` call in its function."""
        loops: list[Loop] = []
        for call in self.all("backward"):
            ends = Loop | Function | ast.Module
            around = next(node for node in self.up(call) if isinstance(node, ends))
            if isinstance(around, Loop) and around not in loops:
                loops.append(around)
        return loops
