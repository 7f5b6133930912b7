"""What a script does with a tensor's result, as far as the script's text says it.

From this, culprit.py tells on which device the script wants the result.
"""

import ast
import builtins
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from torch import Tensor, nn

from to_device.dryrun.script import MOVES, Line
from to_device.dryrun.statements import FETCHES, list_of, names_in, tree

Frames = Sequence[tuple[Line, FrameType]]  # the outermost function first
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
LOOPS = ast.For | ast.AsyncFor | ast.While
DEEPEST = 2  # calls in calls of the script's functions are entered so deep
# Packages whose functions read a tensor's memory, which must be the CPU's
ON_HOST = {"cv2", "matplotlib", "numpy", "pandas", "PIL", "scipy", "seaborn", "sklearn"}


class Side(Enum):
    HOST, DEVICE, NEITHER = range(3)


# Where a tensor should be, by the attribute that the script uses. What is copied to the
# CPU should be on the device before, and what is moved to the device needn't leave it.
ATTRIBUTES = {
    **dict.fromkeys(("numpy", "__array__"), Side.HOST),
    **dict.fromkeys(("cpu", "cuda", "backward"), Side.DEVICE),
    **dict.fromkeys(("item", "tolist", "shape", "size", "dim"), Side.NEITHER),
    **dict.fromkeys(("ndim", "numel", "dtype", "device"), Side.NEITHER),
}


def wanted(
    tensor: Tensor, met: Collection[Tensor], frames: Frames
) -> tuple[Side, Line] | None:
    """Where the script wants the result of a tensor that met others, and which line.

    Follows the result from the line that failed through the statements that come next,
    and on to the function's caller. The first use that tells decides.
    """
    called = ""  # the function that returns the result, unless it is the one that fails
    for line, frame in reversed(frames):
        function = Function(line, scope_of(frame), tensor, met)
        told = function.follow(called)
        if told:
            return told
        if not function.returns:
            break
        called = frame.f_code.co_name
    return next(filter(None, (wanted_later(other, frames) for other in met)), None)


def wanted_later(tensor: Tensor, frames: Frames) -> tuple[Side, Line] | None:
    """The CPU, and which line, if the script uses the tensor there after it failed."""
    for line, frame in reversed(frames):
        function = Function(line, scope_of(frame), None, ())
        names = {k for k, v in frame.f_locals.items() if v is tensor}
        if told := function.follow_names(names, skips=True):
            return told if told[0] is Side.HOST else None
    return None


def arguments_of(line: Line, frame: FrameType, met: Collection[Tensor]) -> list[Tensor]:
    """The function's arguments on the device from which it computed one of `met`.

    There are none if the function calls a model: then the result is the model's.
    """
    function = Function(line, scope_of(frame), None, met)
    values = {name: function.scope.get(name) for name in function.related}
    if any(isinstance(value, nn.Module) for value in values.values()):
        return []
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return [v for n, v in values.items() if n in names and isinstance(v, Tensor)]


class Function:
    """The function that runs at a line, and its variables that have the result."""

    def __init__(
        self,
        line: Line,
        scope: dict[str, Any],
        tensor: Tensor | None,
        met: Collection[Tensor],
        depth: int = 0,
    ) -> None:
        self.line, self.scope, self.tensor, self.met = line, scope, tensor, met
        self.depth = depth  # how many calls of the script's functions were entered
        self.path = path_to(line)
        self.names: set[str] = set()  # the variables with the result
        self.libraries: set[str] = set()  # variables with what ON_HOST returned
        self.returns = False
        self.related = self._related()

    def _related(self) -> set[str]:
        """Variables that tell nothing: `met`, its sources, and what comes of these."""
        found = {
            name
            for name, value in self.scope.items()
            if any(value is one for one in self.met)
        }
        pairs = self._assignments()
        sources = found
        while sources:
            used = {name for goal, value in pairs if goal in sources for name in value}
            sources = {n for n in used - found if is_on_device(self.scope.get(n))}
            found |= sources
        later = found
        while later:
            later = {goal for goal, value in pairs if value & later} - found
            found |= later
        return found

    def _assignments(self) -> list[tuple[str, set[str]]]:
        """Each variable that the function assigns to, and those in its value."""
        block = self.path[0][0] if self.path else []
        parts = [part for statement in block for part in inner(statement)]
        return [pair for part in parts for pair in assigned(part)]

    def start(self, called: str) -> ast.AST | None:
        """The part of the line's statement to begin at: a call, or a variable."""
        if not self.path:
            return None
        block, index = self.path[-1]
        nodes = list(ast.walk(header(block[index])))
        found: list[ast.AST] = [
            node
            for node in nodes
            if called
            and isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] == called
        ]
        for tensor in (self.tensor, *self.met) if not called else ():
            named = [n for n in nodes if value_of(n, self.scope) is tensor]
            found += [n for n in named if is_read(n)] + named
        if found:
            return found[0]
        node: Any = getattr(block[index], "value", None) or block[index]
        while is_method(node) and not text_of(node.func.value):
            node = node.func.value
        return node

    def follow(self, called: str) -> tuple[Side, Line] | None:
        """The first use that tells, in the order in which the statements run.

        `called` is the function that returned the result; "" where the line failed.
        """
        start = self.start(called)
        is_met = bool(called)
        for statement in self.statements() if start else ():
            parents = parents_in(statement)
            nodes = [n for n in parents if text_of(n) in self.names and is_read(n)]
            nodes, start = [start] if start else nodes, None
            if told := self._told(statement, nodes, parents, is_met):
                return told
            is_met = True
            if self.returns or not self.names:
                return None
        return None

    def follow_names(
        self, names: Collection[str], skips: bool = False
    ) -> tuple[Side, Line] | None:
        """The first use of variables that tells, from the function's line on.

        `skips`: the line itself doesn't count.
        """
        self.names = set(names)
        statements = self.statements() if names else iter(())
        for statement in islice(statements, int(skips), None):
            parents = parents_in(statement)
            nodes = [n for n in parents if text_of(n) in self.names and is_read(n)]
            if told := self._told(statement, nodes, parents, True):
                return told
        return None

    def _told(
        self,
        statement: ast.stmt,
        nodes: Sequence[ast.AST],
        parents: Mapping[ast.AST, ast.AST],
        is_met: bool,
    ) -> tuple[Side, Line] | None:
        """What the uses of the result in a statement tell, if they do."""
        goes_on = False
        for node in nodes:
            side = self.use(node, parents, is_met)
            if side in (Side.HOST, Side.DEVICE):
                return side, Line(self.line.file, statement.lineno)
            goes_on |= side is None
        self._keep(statement, goes_on)
        return None

    def inside(self, call: ast.Call, node: ast.AST) -> Side | None:
        """What a function of the script does with an argument, if that tells."""
        function, owner = value_of(call.func, self.scope), None
        if function is None and isinstance(call.func, ast.Attribute):
            owner = value_of(call.func.value, self.scope)
            function = inspect.getattr_static(type(owner), call.func.attr, None)
        code = getattr(function, "__code__", None)
        if not inspect.isfunction(function) or self.depth >= DEEPEST or not code:
            return None
        if not is_beside(code.co_filename, self.line.file):
            return None
        named = [k.arg for k in call.keywords if k is node and k.arg]
        names = code.co_varnames[: code.co_argcount][owner is not None :]
        given = [n for n, a in zip(names, call.args, strict=False) if a is node]
        numbers = (n for *_, n in code.co_lines() if n and n > code.co_firstlineno)
        first = next(numbers, code.co_firstlineno)
        if not (given := [*given, *named]):
            return None
        scope = {**vars(builtins), **function.__globals__, "self": owner}
        line = Line(code.co_filename, first)
        told = Function(line, scope, None, (), self.depth + 1).follow_names(given)
        return told[0] if told else None

    def _keep(self, statement: ast.stmt, has_result: bool) -> None:
        """Note what the variables have that a statement assigns to."""
        names = set(map(ast.unparse, targets(statement)))
        if has_result:
            self.names |= names
            self.names |= set(filter(None, [list_of(statement)]))
            self.returns |= isinstance(statement, ast.Return)
        elif not isinstance(statement, ast.AugAssign):
            self.names -= names
        if isinstance(statement, ast.Assign) and self._is_on_host(statement.value):
            self.libraries |= names

    def statements(self) -> Iterator[ast.stmt]:
        """The line's statement, and what may run after it, also in a loop's next turn.

        A statement that contains others comes before them.
        """
        is_first = True
        while self.path:
            block, index = self.path.pop()
            for statement in block[index + (not is_first) :]:
                yield from inner(statement)
            around = self.path[-1] if self.path else None
            if around and isinstance(around[0][around[1]], LOOPS):
                for statement in block[:index]:
                    yield from inner(statement)
            is_first = False

    def use(
        self, node: ast.AST, parents: Mapping[ast.AST, ast.AST], is_met: bool
    ) -> Side | None:
        """What the use of a tensor says; None if the statement's value is a result.

        `is_met`: what the tensor meets in the statement tells, too. A tensor that
        failed meets the other one first, and that tells nothing.
        """
        while (parent := parents.get(node)) and not isinstance(parent, ast.stmt):
            if isinstance(parent, ast.FormattedValue):
                return Side.NEITHER
            if isinstance(parent, ast.Attribute):
                if parent.attr in ATTRIBUTES:
                    return ATTRIBUTES[parent.attr]
                if parent.attr == "to":
                    call = ast.unparse(parents[parent])
                    call = call.removeprefix(ast.unparse(parent.value))
                    if FETCHES.match(call) or MOVES.match(call):
                        return Side.DEVICE
            is_argument = isinstance(parent, ast.Call) and node is not parent.func
            if isinstance(parent, ast.Call) and is_argument:
                function = value_of(parent.func, self.scope)
                if is_on_device(function) or self._is_on_host(parent):
                    return Side.DEVICE if is_on_device(function) else Side.HOST
                if any(function is one for one in (float, int, bool, str, len, print)):
                    return Side.NEITHER
                if side := self.inside(parent, node):
                    return side
            others = [n for n in ast.iter_child_nodes(parent) if n is not node]
            if isinstance(parent, ast.BinOp | ast.Compare | ast.Subscript) or (
                is_argument and len(others) > 1
            ):
                if is_met and any(map(self._is_on_device, others)):
                    return Side.DEVICE
                is_met = True
            node = parent
        return None

    def _is_on_device(self, node: ast.AST) -> bool:
        """Whether code has something on the device that isn't related to `met`."""
        text = ast.unparse(node)
        if FETCHES.search(text) or (
            isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES
        ):
            return False
        if MOVES.search(text):
            return True
        if (name := text_of(node)) in self.names | self.related:
            return False
        if is_on_device(value := value_of(node, self.scope)):
            return not (value is self.tensor or any(value is one for one in self.met))
        parts = () if name else ast.iter_child_nodes(node)
        return any(map(self._is_on_device, parts)) or (
            isinstance(node, ast.Attribute) and self._is_on_device(node.value)
        )

    def _is_on_host(self, node: ast.AST) -> bool:
        """Whether a call is one of a function, or of an object, from ON_HOST."""
        if not isinstance(node, ast.Call):
            return False
        root: ast.AST = node.func
        while True:
            if package_of(value_of(root, self.scope)) in ON_HOST:
                return True
            if not isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                return text_of(root) in self.libraries
            root = root.func if isinstance(root, ast.Call) else root.value


def is_on_device(value: Any) -> bool:
    """Whether a value is a tensor on the device, or a module with such parameters.

    A tensor without dimensions may meet tensors anywhere, so it doesn't count.
    """
    if isinstance(value, nn.Module):
        own = getattr(value, "_parameters", {}).values()  # a class may override others
        return any(p is not None and not p.is_cpu for p in own) or any(
            map(is_on_device, getattr(value, "_modules", {}).values())
        )
    return isinstance(value, Tensor) and value.dim() > 0 and not value.is_cpu


def scope_of(frame: FrameType) -> dict[str, Any]:
    return {**vars(builtins), **frame.f_globals, **frame.f_locals}


def parents_in(statement: ast.stmt) -> dict[ast.AST, ast.AST]:
    """The node around each node of a statement, without the statements in it."""
    return {
        child: node
        for node in ast.walk(header(statement))
        for child in ast.iter_child_nodes(node)
    }


def is_beside(file: str, other: str) -> bool:
    """Whether a file is in the folder of another one, or below, and no library's."""
    folder = Path(other).parent
    return "site-packages" not in file and Path(file).is_relative_to(folder)


def is_read(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Load)


def is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)


def assigned(statement: ast.stmt) -> Iterator[tuple[str, set[str]]]:
    """For each variable that a statement assigns to: the variables in its value."""
    value: Any = getattr(statement, "value", None)
    goals = getattr(statement, "targets", [getattr(statement, "target", None)])
    for goal in filter(None, goals if value else ()):
        pairs = [(goal, value)]
        if isinstance(goal, ast.Tuple | ast.List):
            values = getattr(value, "elts", [])
            same = len(values) == len(goal.elts)
            pairs = [
                (one, values[i] if same else value) for i, one in enumerate(goal.elts)
            ]
        for one, part in pairs:
            yield ast.unparse(one), names_in(part)


def package_of(value: Any) -> str:
    """The package of a module, a function, or an object's class."""
    if inspect.ismodule(value):
        return value.__name__.partition(".")[0]
    module = getattr(value, "__module__", None) if callable(value) else None
    module = module or type(value).__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


def value_of(node: ast.AST, scope: Mapping[str, Any]) -> Any:
    """The value of a variable, or of an attribute's attribute; None if it has none.

    Reads what an object holds, and runs no code of the script.
    """
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = value_of(node.value, scope)
    held = getattr(owner, "__dict__", {})
    kinds = ("_modules", "_parameters", "_buffers")
    parts = [held.get(kind, {}) for kind in kinds if isinstance(owner, nn.Module)]
    return next((part[node.attr] for part in (held, *parts) if node.attr in part), None)


def text_of(node: ast.AST) -> str | None:
    """The text of a variable or of an attribute; None for other code."""
    is_variable = isinstance(node, ast.Name | ast.Attribute)
    return ast.unparse(node) if is_variable else None


def targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement assigns to: variables and attributes."""
    found: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        found = list(statement.targets)
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        found = [statement.target]
    parts = [part for target in found for part in getattr(target, "elts", [target])]
    return [part for part in parts if text_of(part)]


def header(statement: ast.stmt) -> ast.AST:
    """A statement without the statements in it."""
    blocks = ("body", "orelse", "finalbody", "handlers", "cases")
    fields = {
        name: [] if name in blocks and isinstance(value, list) else value
        for name, value in ast.iter_fields(statement)
    }
    return type(statement)(**fields)


def inner(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement, and the statements in it that run with it, in their order."""
    yield statement
    if isinstance(statement, FUNCTIONS):
        return
    for name in ("body", "orelse", "handlers", "finalbody"):
        for part in getattr(statement, name, []):
            if isinstance(part, ast.stmt):
                yield from inner(part)


def path_to(line: Line) -> list[tuple[list[ast.stmt], int]]:
    """The blocks around a line in its function, each with the index of the statement.

    The outermost block comes first. The last statement is the line's own.
    """
    path: list[tuple[list[ast.stmt], int]] = []
    blocks: list[list[ast.stmt]] = [tree(line.file).body]
    while blocks:
        found = [
            (block, index)
            for block in blocks
            for index, statement in enumerate(block)
            if statement.lineno <= line.number <= (statement.end_lineno or 0)
        ]
        if not found:
            break
        block, index = found[0]
        if isinstance(block[index], FUNCTIONS):
            path = []
        else:
            path.append((block, index))
        parts = [block[index], *getattr(block[index], "handlers", [])]
        names = ("body", "orelse", "finalbody")
        blocks = [
            inside
            for part in parts
            for name in names
            if isinstance(inside := getattr(part, name, None), list)
        ]
    return path


def is_in_loop(line: Line) -> bool:
    """Whether a loop in a function, or in the script itself, runs this line again."""
    return any(isinstance(block[index], LOOPS) for block, index in path_to(line)[:-1])
