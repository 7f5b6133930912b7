"""What a script's statements do with tensors, as far as their text says it."""

import ast
import linecache
import re
from collections.abc import Collection, Iterator, Sequence
from types import CodeType

import torch
from torch import Tensor, nn

from to_device.dryrun.origins import SAME, UNSEEN
from to_device.dryrun.script import COLLECTS, MOVES, Line

# Code that copies a tensor to the CPU
FETCHES = re.compile(r"\.(cpu|numpy|tolist|item)\(|\.to\( *(device *= *)?['\"]cpu")

# Classes of tensors on the CPU
CLASSES = {kind.__name__ for kind in torch._tensor_classes} | {"Tensor"}
EMPTY = {"list", "dict", "OrderedDict"}
# Methods and functions without a parameter for the device
HOLDERS = Tensor, nn.Module, dict, list, str
WITHOUT_DEVICE = {*UNSEEN, *(name for kind in HOLDERS for name in dir(kind))}


def assignments(file: str, names: Collection[str]) -> list[int]:
    """The numbers of the lines that assign to variables or attributes.

    A line doesn't count if it may give one of these names the value of another one, or
    its own, as in `x, y = (f(x), 1) if y is None else (x, y)`.
    """
    return [
        node.lineno
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for part, values in assigned(
            node.target if isinstance(node, ast.AnnAssign) else node.targets[0],
            alternatives(node.value),
        )
        if ast.unparse(part) in names
        and not any(ast.unparse(value) in names for value in values)
    ]


def assigned(
    target: ast.expr, values: Sequence[ast.expr]
) -> Iterator[tuple[ast.AST, Sequence[ast.expr]]]:
    """The parts of an assignment's target, each with the values that it may get.

    For a part that gets an unknown part of a value, it is the whole value.
    """
    if not isinstance(target, ast.Tuple | ast.List):
        yield from ((part, values) for part in ast.walk(target))
        return
    count = len(target.elts)
    for place, part in enumerate(target.elts):
        own = (
            value.elts[place]
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == count
            else value
            for value in values
        )
        yield from assigned(part, [one for each in own for one in alternatives(each)])


def alternatives(value: ast.expr) -> list[ast.expr]:
    """The values that a conditional expression may have, or the value itself."""
    if not isinstance(value, ast.IfExp):
        return [value]
    return [*alternatives(value.body), *alternatives(value.orelse)]


def tree(file: str) -> ast.Module:
    return ast.parse("".join(linecache.getlines(file)))


def lines_of(code: CodeType) -> range:
    """The numbers of the lines of a function, or of a whole file."""
    numbers = [number for *_, number in code.co_lines() if number]
    return range(min(numbers), max(numbers) + 1)


def is_dropped(line: Line) -> bool:
    """Whether a line calls `.to()` or `.cuda()` and at most stores the result.

    It may store the result in a variable, a tuple, or a comprehension's list.
    """
    try:
        nodes = list(ast.walk(ast.parse(line.code)))
    except SyntaxError:  # the line is only a part of its statement
        return True
    values = [n.value for n in nodes if isinstance(n, ast.Expr | ast.Assign)]
    values += [n.elt for n in nodes if isinstance(n, ast.ListComp | ast.GeneratorExp)]
    values += [part for n in nodes if isinstance(n, ast.Tuple) for part in n.elts]
    calls = [v.func for v in values if isinstance(v, ast.Call)]
    return any(getattr(function, "attr", "") in ("to", "cuda") for function in calls)


def is_default(line: Line, function: str) -> bool:
    """Whether code of a function of this name, at a line, makes a parameter's default.

    The name tells it from the body of a function that has one line.
    """
    return any(
        default.lineno <= line.number <= (default.end_lineno or default.lineno)
        for node in ast.walk(tree(line.file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name != function
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    )


def may_take_device(line: Line) -> bool:
    """Whether a call at a line may have a parameter for the device.

    A tensor's own methods, such as `clone`, have none, but its `new_zeros` has one. A
    class of tensors on the CPU, such as torch.FloatTensor, takes no other device.
    """
    calls = [
        ast.unparse(node.func)
        for node in ast.walk(tree(line.file))
        if isinstance(node, ast.Call)
        and node.lineno <= line.number <= (node.end_lineno or node.lineno)
    ]
    named = [(call, *call.rpartition(".")[1:]) for call in calls]
    others = [
        call
        for call, dot, name in named
        if name not in CLASSES
        and not (dot and name in WITHOUT_DEVICE and not name.startswith("new_"))
    ]
    if any(name in CLASSES for *_, name in named):
        # What such a class is given, such as an array, needs no device.
        return any(call.startswith("torch.") for call in others)
    return bool(others)


def statement_at(line: Line) -> tuple[ast.stmt | None, list[ast.stmt]]:
    """The innermost statement at a line, and the block that it stands in."""
    found: ast.stmt | None = None
    around: list[ast.stmt] = []
    for node in ast.walk(tree(line.file)):  # outer blocks come before inner ones
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for statement in block if isinstance(block, list) else ():
                end = statement.end_lineno or statement.lineno
                if statement.lineno <= line.number <= end:
                    found, around = statement, block or []
    return found, around


def moves(statement: ast.stmt) -> bool:
    """Whether a statement moves something to a device, or to the CPU."""
    code = ast.unparse(statement)
    return bool(MOVES.search(code) or FETCHES.search(code))


def names_in(node: ast.AST) -> set[str]:
    """The names of variables and attributes in code, such as "batch.x" and "batch"."""
    parts = (p for p in ast.walk(node) if isinstance(p, ast.Name | ast.Attribute))
    return set(map(ast.unparse, parts))


def functions_in(node: ast.AST) -> set[str]:
    """The names of the functions and methods that code calls, but no moves."""
    calls = (part.func for part in ast.walk(node) if isinstance(part, ast.Call))
    names = {ast.unparse(function).split(".")[-1] for function in calls}
    return names - {"to", "cuda", "cpu"}


def copy_of(statement: ast.stmt) -> str | None:
    """The variable that gets another one's tensor, perhaps reshaped; or None."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    value = statement.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in SAME:
            return None
        value = value.func.value
    is_variable = isinstance(value, ast.Name | ast.Attribute)
    return ast.unparse(statement.targets[0]) if is_variable else None


def list_of(statement: ast.stmt) -> str | None:
    """The list to which a statement adds something; or None."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    adds = isinstance(method, ast.Attribute) and method.attr in COLLECTS
    return ast.unparse(method.value) if adds else None  # type: ignore[union-attr]


def makes_empty(line: Line) -> bool:
    """Whether a line assigns a new list or dictionary with nothing in it."""
    statement, _ = statement_at(line)
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call):
        names = functions_in(value)
        return not (value.args or value.keywords) and names <= EMPTY
    parts = getattr(value, "elts", None), getattr(value, "keys", None)
    return isinstance(value, ast.List | ast.Dict) and not any(parts)


def joined_to(statement: ast.stmt) -> str | None:
    """The variable that gets a function's result of itself and others; or None."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
        return None
    target = ast.unparse(statement.targets[0])
    is_call = isinstance(statement.value, ast.Call)
    return target if is_call and target in names_in(statement.value) else None
