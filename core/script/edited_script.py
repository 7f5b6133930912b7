"""A script whose text can be changed at what its syntax says."""

import ast
import re
from collections.abc import Iterable, Iterator

from core.script.syntax import Function, Import, ParsedScript, callee, dotted
from to_device.dryrun.report import NEWLINE
from to_device.dryrun.script import MOVES

# What names a device: `device`, `dev`, `args.device`, but no `devices`
OF_DEVICE = re.compile(r"(?:^|[._])dev(?:ice)?$", re.IGNORECASE)
CHOOSES = re.compile(r"torch\.device\(|current_accelerator\(|cuda")
# What needs no parentheses before `.to(device)`
ATOMS = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
REST = re.compile(r"[^\S\r\n]*+(?:#[^\r\n]*+)?(?=[\r\n]|\Z)")

Change = tuple[int, int, str]  # the text from one place to another becomes a new one


class EditedScript(ParsedScript):
    """A script, and where its syntax stands in its text."""

    def __init__(self, text: str) -> None:
        self.text = text.removeprefix("\ufeff")
        super().__init__(text)
        ends = [match.end() for match in NEWLINE.finditer(self.text)]
        self.starts = [0, *ends]
        first = NEWLINE.search(self.text)
        self.newline = first[0] if first else "\n"
        imports = [node for node in self.nodes if isinstance(node, Import)]
        names = [alias.asname or alias.name for node in imports for alias in node.names]
        self.imported = {name.partition(".")[0] for name in names}

    def statement(self, line: int) -> ast.stmt | None:
        """The innermost statement at a line."""
        found = [
            node
            for node in self.nodes
            if isinstance(node, ast.stmt)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(found, key=lambda node: node.lineno, default=None)

    def index(self, line: int, column: int) -> int:
        """Where a line's byte is in the text."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        before = self.text[start:end].encode()[:column]
        return start + len(before.decode(errors="ignore"))

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.index(node.lineno, node.col_offset), self.index(last, column)

    def code(self, node: ast.stmt | ast.expr) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def changed(self, changes: Iterable[Change]) -> str:
        """The text with changes; one that lies in another is left out."""
        parts, done = [], 0
        for start, end, new in sorted(
            changes, key=lambda change: (change[0], -change[1])
        ):
            if start >= done:
                parts += [self.text[done:start], new]
                done = end
        return "".join([*parts, self.text[done:]])

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements of the block that a statement stands in."""
        around = self.parents[statement]
        blocks = (getattr(around, name, None) for name in around._fields)
        own = (b for b in blocks if isinstance(b, list) and statement in b)
        return next(own, [statement])

    def indentation(self, statement: ast.stmt) -> str | None:
        """The blanks before a statement; None if it begins in the middle of a line."""
        start, place = self.starts[statement.lineno - 1], self.span(statement)[0]
        return self.text[start:place] if not self.text[start:place].strip() else None

    def before(self, statement: ast.stmt, *lines: str) -> list[Change]:
        """New lines before a statement; none if it begins in the middle of a line."""
        place, indentation = self.span(statement)[0], self.indentation(statement)
        if indentation is None:
            return []
        new = "".join(f"{line}{self.newline}{indentation}" for line in lines)
        return [(place, place, new)]

    def after(self, statement: ast.stmt, *lines: str) -> list[Change]:
        """New lines after a statement; none if another one follows in its line."""
        indentation = self.indentation(statement)
        rest = REST.match(self.text, self.span(statement)[1])
        if indentation is None or rest is None:
            return []
        new = "".join(f"{self.newline}{indentation}{line}" for line in lines)
        return [(rest.end(), rest.end(), new)]

    def without(self, statement: ast.stmt) -> list[Change]:
        """No line of a statement; nothing if another one stands in the same line."""
        start = self.starts[statement.lineno - 1]
        rest = REST.match(self.text, self.span(statement)[1])
        if self.indentation(statement) is None or rest is None:
            return []
        newline = NEWLINE.match(self.text, rest.end())
        return [(start, newline.end() if newline else rest.end(), "")]

    def appended(self, node: ast.expr, method: str) -> list[Change]:
        start, end = self.span(node)
        if isinstance(node, ATOMS):
            return [(end, end, method)]
        return [(start, start, "("), (end, end, f"){method}")]

    def with_argument(self, call: ast.Call, argument: str) -> list[Change]:
        end = self.span(call)[1] - 1
        parts = [*call.args, *(item.value for item in call.keywords)]
        # The text after the last argument may hold a comma and a comment.
        last = max((self.span(part)[1] for part in parts), default=None)
        if last is None:
            return [(end, end, argument)]
        return [(last, last, f", {argument}")]

    def wrapped(self, nodes: Iterable[ast.AST], method: str) -> Iterator[str]:
        """Each expression with a method call after it, one at a time."""
        for node in nodes:
            is_value = isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            is_module = dotted(node) in self.imported
            if isinstance(node, ast.expr) and is_value and not is_module:
                yield self.changed(self.appended(node, method))

    def values(self, statement: ast.stmt) -> list[ast.expr]:
        """The values that a statement passes to functions, or keeps."""
        value = getattr(statement, "value", None)
        found = [value] if isinstance(value, ast.expr) else []
        if isinstance(statement, ast.Expr):
            found = []
        calls = [n for n in parts_of(statement) if isinstance(n, ast.Call)]
        found += [argument for call in calls for argument in call.args]
        found += [item.value for call in calls for item in call.keywords]
        lists = [n for n in parts_of(statement) if isinstance(n, ast.List | ast.Tuple)]
        found += [part for each in lists for part in each.elts]
        found += [n for n in parts_of(statement) if isinstance(n, ast.Name)]
        kinds = (*ATOMS, ast.BinOp)
        return [node for node in found if isinstance(node, kinds)]

    def goals(self, statement: ast.Assign) -> list[str]:
        """The variables that an assignment gives a value."""
        parts = getattr(statement.targets[0], "elts", statement.targets[:1])
        return [dotted(part) for part in parts if dotted(part)]

    def devices(self, node: ast.AST) -> list[str]:
        """What names the device at a place: variables, or other tensors' devices."""
        around = [a for a in self.up(node) if isinstance(a, Function | ast.ClassDef)]
        functions = [a for a in around if isinstance(a, Function)]
        arguments = [
            argument.arg
            for function in functions[:1]
            for argument in (*function.args.args, *function.args.kwonlyargs)
            if argument.arg not in ("self", "cls")
        ]
        found = [name for name in arguments if OF_DEVICE.search(name)]
        others = [name for name in arguments if name not in found]
        own = [place for place in around if isinstance(place, ast.ClassDef)]
        in_class = {ast.unparse(part) for c in own for part in ast.walk(c)}
        found += [name for name in ("self.device",) if name in in_class]
        places = (*functions, self.tree)
        named = [
            name
            for name, value, statement in self.assignments
            if self.place(statement) in places
            and name.isidentifier()
            and (OF_DEVICE.search(name) or CHOOSES.search(self.words_of(value)))
            and not MOVES.search(self.words_of(value))
        ]
        of_tensors = [f"{name}.device" for name in others]
        if own and functions and functions[0].name not in ("__init__", "__new__"):
            of_tensors += ["next(self.parameters()).device"]
            return list(dict.fromkeys([*found, *of_tensors, *named]))
        of_tensors = [] if found or named else of_tensors
        options = [
            ast.unparse(part)
            for part in self.nodes
            if isinstance(part, ast.Attribute) and OF_DEVICE.search(ast.unparse(part))
        ]
        options = [o for o in options if not o.startswith(("self.", "torch."))]
        return list(dict.fromkeys([*found, *named, *options, *of_tensors]))


def parts_of(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


def loop_names(loop: ast.For) -> list[str]:
    """The variables of a loop that may be tensors."""
    target: ast.expr = loop.target
    parts: list[ast.expr] = getattr(target, "elts", [target])
    if callee(loop.iter) == "enumerate":
        parts = parts[1:]
    names = [n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)]
    return [name for name in names if name != "_"]
