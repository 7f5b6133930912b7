"""Reads a script, shortens its long loops, and compiles it.

Once an optimizer has made enough steps, the loop around it ends, and the script goes on
after the loop. If the loop is over a range, it skips to the range's last item. A loop
that calls models but no optimizer, such as an evaluation, ends later. What counts is
how much torch has done, and never the time: a slow machine leaves the same loops as a
fast one. Before a loop ends, it makes turns for what only its later turns would run
(see branches.py). All lines keep their numbers.
"""

import ast
import builtins
import importlib.machinery
import json
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from to_device.dryrun.branches import Branches, Guard, Marks, Whole, length, turns_for

Tell = Callable[[int, str, Any], Any]  # takes line, name, and value; returns the value
OURS = str(Path(__file__).parents[1])  # to_device/, which is never part of a script
# No loop ends before so much work (see Progress), so that short training finishes. This
# is about a second's on two cores of 2026.
LEAST_WORK = 10_000
LEAST_WORK_WITHOUT_STEPS = 30_000  # for a loop in which no optimizer makes a step
MOST_NAMED = 8  # a loop over so few names makes all turns: see `is_named`
# Libraries' code with this text may train, so its loops end as well.
TRAINS = re.compile(rb"\.backward\(|[\w.]*optim\w*\.step\(")
# Kinds of expressions whose values are reported even if no variable gets them.
EXPRESSIONS = (ast.Call, ast.Attribute, ast.BinOp, ast.Compare)
# Code that moves a tensor or a model, and doesn't only convert it to another dtype.
MOVES = re.compile(r"\.(cuda\(|to\((?!torch\.\w+\)|[\w.]*dtype))")
COLLECTS = ("append", "extend", "add")  # methods that put something into a list
# Constructors such as torch.LongTensor, which no TorchFunctionMode sees
UNSEEN = re.compile(
    "(BFloat16|Bool|Byte|Char|Double|Float|Half|Int|Long|Short)?Tensor|Generator"
)
# A line's indentation, without `\s`, which would go on through any number of lines.
MAGIC = re.compile(r"^([^\S\n]*+)(?:[!%?]|\w++ *+= *+[!%]).*$", re.MULTILINE)
IN_TOP = "pyproject.toml", "setup.py", ".git"  # what the top folder of a project has
TOO_DEEP = "the code is nested too deeply"


class Line(NamedTuple):
    """A line of the script, or of a file beside it."""

    file: str
    number: int

    @property
    def code(self) -> str:
        return linecache.getline(self.file, self.number).strip()


class Progress(NamedTuple):
    steps: int  # how many steps optimizers have made
    calls: int  # how often layers with parameters were called
    work: int  # calls of torch and operations, and one for each 64 KB of memory
    in_model: bool = False  # whether a model's forward pass runs


class Source(NamedTuple):
    name: str
    text: str


def sources(name: str, text: str, has_magic: bool = False) -> list[Source]:
    """The script, or a notebook's cells. Raises ValueError for a bad notebook.

    `has_magic` says that a script may have a notebook's commands, such as `!pip ...`.
    """
    if not name.endswith(".ipynb"):
        return [Source(name, without_magic(text) if has_magic else text)]
    try:
        cells = json.loads(text)["cells"]
        codes = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not a notebook: {error!r}") from None
    return [
        Source(f"cell {number}", without_magic(code))
        for number, code in enumerate(codes, 1)
    ]


def without_magic(text: str) -> str:
    """The code with `pass` in place of a notebook's commands, such as `!pip ...`."""
    try:
        ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError):  # the latter two: nested deeply
        return MAGIC.sub(r"\1pass", text)
    return text


def project_of(folder: Path) -> str:
    """The top folder of the project that this folder is in, or the folder itself."""
    for above in (folder, *folder.parents):
        if any((above / name).exists() for name in IN_TOP):
            return str(above)
    return str(folder)


class Script:
    """Knows which files belong to the script, and when its loops end."""

    def __init__(
        self,
        name: str,
        steps: int,
        progress: Callable[[], Progress],
        module: str = "",
        visits: bool = True,
    ) -> None:
        """`visits`: a loop that ends early makes a turn for what later turns run."""
        self.steps, self.progress, self.shortens = steps, progress, False
        self.visits, self.branches = visits, Branches()
        self.tell: Tell | None = None  # called with each value that a line makes
        # Called with each value that a function with a move (see MOVES) returns
        self.returned: Callable[[Any, str, int], Any] | None = None
        # Called with what each constructor in UNSEEN makes; returns it
        self.made: Callable[[Any, str, int], Any] | None = None
        # Called after a turn that ran a branch early
        self.visited: Callable[[], None] = lambda: None
        self.shortened: set[Line] = set()  # loops that ended early
        self.endings = 0  # how often one of them did
        self.main: set[str] = set()
        # The folder of a script, or the one in which a module's top package is
        self.folder = str(Path(name).resolve().parents[module.count(".")])
        folders = self.folder, os.getcwd(), project_of(Path(self.folder))
        self.folders = tuple(folder + os.sep for folder in folders)
        self._paths = set(sys.path)  # the entries that are known

    def own_new_folders(self) -> None:
        """Own the folders that the script has added to sys.path since it began."""
        added = {p for p in sys.path if isinstance(p, str) and p not in self._paths}
        if added:
            self._paths |= added
            folders = {folder for p in added for folder in (p, os.path.abspath(p))}
            self.folders += tuple(
                folder.rstrip(os.sep) + os.sep
                for folder in sorted(folders)
                if os.path.isabs(folder) and Path(folder) != Path(folder).parent
            )

    def owns(self, file: str) -> bool:
        """Whether a file is the script, or is of its project and no library."""
        if file in self.main:
            return True
        beside = file.startswith(self.folders) and "site-packages" not in file
        return beside and not file.startswith((sys.prefix, sys.base_prefix, OURS))

    def lines(
        self, frames: Iterable[tuple[FrameType, int]]
    ) -> Iterator[tuple[Line, FrameType]]:
        """Pick the script's own lines from pairs of a frame and its line number."""
        for frame, number in frames:
            if self.owns(frame.f_code.co_filename):
                yield Line(frame.f_code.co_filename, number), frame

    def compile(self, source: Source) -> CodeType:
        """Compile the script, or a cell. Raises the script's own SyntaxError.

        Code that is nested too deeply for Python raises a SyntaxError, too.
        """
        self.main.add(source.name)
        lines = source.text.splitlines(keepends=True)
        linecache.cache[source.name] = (len(source.text), None, lines, source.name)
        try:
            return self.code(source.text, source.name)
        except (RecursionError, MemoryError):
            raise SyntaxError(TOO_DEEP) from None

    def code(self, text: str | bytes, file: str) -> CodeType:
        tree = ast.parse(text, file)
        if self.tell is not None and file in self.main:
            vars(builtins).update(__tell__=self.tell)
            tree = ast.fix_missing_locations(Values().visit(tree))
        if self.returned is not None:
            vars(builtins).update(__returned__=self.returned)
            tree = ast.fix_missing_locations(Returns(file).visit(tree))
        if self.made is not None:
            vars(builtins).update(__made__=self.made)
            tree = ast.fix_missing_locations(Constructors(file).visit(tree))
        if self.shortens:
            tree = Marks(file, self.branches, tree).visit(tree)
            tree = ast.fix_missing_locations(Loops(file).visit(tree))
        return compile(tree, file, "exec")

    def install(self) -> None:
        """Let loops call `turns` and `begin`, also in files beside the script."""
        self.shortens = True
        vars(builtins).update(__turns__=self.turns, __begin__=self.begin)
        self.branches.install()
        loader: Any = importlib.machinery.SourceFileLoader
        of_python = loader.source_to_code

        def source_to_code(this: Any, data: bytes, path: str, **options: Any) -> Any:
            self.own_new_folders()
            if isinstance(data, bytes) and self.owns(path):
                return self.code(data, path)
            is_torch = "/torch/" in path.replace("\\", "/")
            if isinstance(data, bytes) and TRAINS.search(data) and not is_torch:
                tree = Loops(path, of_library=True).visit(ast.parse(data, path))
                return compile(ast.fix_missing_locations(tree), path, "exec")
            return of_python(this, data, path, **options)

        loader.source_to_code = source_to_code

    def turns(
        self, iterable: Iterable, of_library: bool, file: str, number: int
    ) -> Iterator:
        """Yield items until the loop should end, and then a range's last item."""
        last = iterable[-1:] if isinstance(iterable, range) else ()
        place = Line(file, number)
        turns = length(iterable)
        loop = Loop(self, of_library, place, turns, bool(last))
        are_few = turns is not None and turns <= MOST_NAMED
        try:
            for item in iterable:
                if are_few and is_named(item):
                    loop.turns += 1
                elif item in last:
                    loop.disarm()
                elif not loop.goes_on():
                    yield from last
                    return
                yield item
        finally:
            loop.disarm()

    def begin(self, of_library: bool, file: str, number: int) -> Callable[[], bool]:
        """Return a function for a `while` that begins now: see Loop.goes_on."""
        return Loop(self, of_library, Line(file, number)).goes_on


class Loop:
    """A loop that runs, and decides when to end.

    A loop over a model's layers doesn't end early, nor does a library's, unless it
    trains. `length` is how many turns the loop has, if that is known. `has_last` says
    that the loop makes its last turn even if it ends early.
    """

    def __init__(
        self,
        script: Script,
        of_library: bool,
        line: Line,
        length: int | None = None,
        has_last: bool = False,
    ) -> None:
        self.script, self.of_library, self.line = script, of_library, line
        self.length, self.has_last = length, has_last
        self.before, self.turns = script.progress(), -1
        self.endings, self.since = script.endings, script.branches.now
        # What is armed in each turn to come; at the end, in a range's last one
        self.to_come: list[set[Guard | Whole]] | None = None
        self.armed: set[Guard | Whole] = set()  # in this turn

    def goes_on(self) -> bool:
        """Whether to go on. The loop asks before each turn, but a range's last."""
        self.turns += 1
        if self.before.in_model or not self._is_over():
            return True
        script = self.script
        if self.to_come is None:
            self.to_come = self._last_turns() if script.visits else [set()]
        elif self.armed:  # what ran early may itself have parts that run now and then
            self._add_turns(self.to_come)
        if self.armed:
            script.visited()
        self.disarm()
        self.armed = self.to_come.pop(0)
        script.branches.armed |= self.armed
        if self.to_come:
            return True
        script.shortened.add(self.line)
        script.endings += 1
        return False

    def _last_turns(self) -> list[set[Guard | Whole]]:
        """What is armed in each turn to come, and then in a range's last turn.

        After a turn that runs a branch early, the loop makes one in which nothing is
        armed. It meets what the branch left behind, such as a model on the CPU.
        """
        turns, late = self._pending()
        if late or (self.has_last and not turns):
            turns.append(late)
        return turns if self.has_last else [*turns, set()]

    def _add_turns(self, to_come: list[set[Guard | Whole]]) -> None:
        """Add turns for what was met first in a part that ran early."""
        turns, late = self._pending()
        to_come[1:1] = turns  # after the turn that meets what the part left behind
        if late and self.has_last:
            to_come[-1] = to_come[-1] | late
        elif late:
            to_come.insert(-1, late)

    def _pending(self) -> tuple[list[set[Guard | Whole]], set[Guard | Whole]]:
        """What is armed in turns before the last one, and in the last one."""
        script, turns = self.script, list[set[Guard | Whole]]()
        pending = script.branches.pending(
            self.since,
            self.turns,
            self.length,
            self.line,
            nests=script.endings > self.endings,
        )
        for guards in (*turns_for(pending.soon), *turns_for(pending.ends)):
            turns += [guards, set()]
        return turns, set(pending.late)

    def disarm(self) -> None:
        self.script.branches.armed -= self.armed

    def _is_over(self) -> bool:
        now, before = self.script.progress(), self.before
        steps, calls = now.steps - before.steps, now.calls - before.calls
        least = LEAST_WORK if steps else LEAST_WORK_WITHOUT_STEPS
        others = 0 if self.of_library else min(self.turns, calls)
        enough = (steps or others) >= self.script.steps
        return enough and now.work - before.work > least


def is_named(item: Any) -> bool:
    """Whether a loop's item is a name, as of a phase, or has one beside its value.

    Each turn then does something else, as in `for phase in ("train", "val")`.
    """
    parts = item if isinstance(item, tuple) else (item,)
    return any(isinstance(part, str) for part in parts)


class Values(ast.NodeTransformer):
    """Makes each line report its values, also those that no variable gets."""

    def visit(self, node: Any) -> Any:
        self.generic_visit(node)
        value = getattr(node, "value", None)
        if isinstance(node, ast.For):
            node.body[:0] = self._names(node.target, node.target)
        elif isinstance(node, ast.Assign):
            return [node, *self._names(node, *node.targets)]
        elif isinstance(node, ast.AnnAssign | ast.AugAssign) and value:
            return [node, *self._names(node, node.target)]
        elif isinstance(node, ast.Expr | ast.Return) and isinstance(value, EXPRESSIONS):
            node.value = self._call(value, ast.unparse(value), value)
        return node

    def _names(self, at: ast.stmt | ast.expr, *targets: ast.expr) -> list[ast.stmt]:
        """Statements that report the variables to which `targets` assign."""
        names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        stored = [n.id for n in names if isinstance(n.ctx, ast.Store)]
        return [
            ast.copy_location(ast.Expr(self._call(at, name, _name(name))), at)
            for name in stored
        ]

    def _call(self, at: ast.AST, name: str, value: ast.expr) -> ast.expr:
        line = ast.Constant(getattr(at, "lineno", 0))
        call = ast.Call(_name("__tell__"), [line, ast.Constant(name), value], [])
        return ast.copy_location(call, at)


class Returns(ast.NodeTransformer):
    """Makes each function that moves tensors report what it returns."""

    def __init__(self, file: str) -> None:
        self.file, self.moves = file, False

    def visit_FunctionDef(self, function: ast.FunctionDef) -> ast.AST:
        outer, self.moves = self.moves, bool(MOVES.search(ast.unparse(function)))
        self.generic_visit(function)
        self.moves = outer
        return function

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if self.moves and node.value:
            node.value = _call("__returned__", self.file, node, node.value)
        return node


class Constructors(ast.NodeTransformer):
    """Makes each call of a constructor in UNSEEN report what it makes."""

    def __init__(self, file: str) -> None:
        self.file = file

    def visit_Call(self, call: ast.Call) -> ast.AST:
        self.generic_visit(call)
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        is_unseen = UNSEEN.fullmatch(name)
        return _call("__made__", self.file, call, call) if is_unseen else call


class Loops(ast.NodeTransformer):
    """Makes each loop ask whether to go on."""

    def __init__(self, file: str, of_library: bool = False) -> None:
        self.file, self.of_library = file, ast.Constant(of_library)

    def visit_For(self, loop: ast.For) -> ast.AST:
        self.generic_visit(loop)
        if not yields(loop):
            values = loop.iter, self.of_library
            loop.iter = _call("__turns__", self.file, loop.iter, *values)
        return loop

    def visit_While(self, loop: ast.While) -> list[ast.AST]:
        self.generic_visit(loop)
        if yields(loop):
            return [loop]
        goes_on = f"__goes_on_{loop.lineno}__"
        begin = _call("__begin__", self.file, loop.test, self.of_library)
        first = ast.Assign([ast.Name(goes_on, ast.Store())], begin)
        test = [loop.test, ast.Call(_name(goes_on), [], [])]
        loop.test = ast.copy_location(ast.BoolOp(ast.And(), test), loop.test)
        return [ast.copy_location(first, loop), loop]


def yields(loop: ast.AST) -> bool:
    """Whether the loop is a generator's: its caller decides when it ends."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(loop))


def _call(
    function: str, file: str, at: ast.expr | ast.stmt, *arguments: ast.expr
) -> ast.expr:
    """The code of a call with these arguments, then a file and `at`'s line."""
    place = [ast.Constant(file), ast.Constant(at.lineno)]
    call = ast.Call(_name(function), [*arguments, *place], [])
    return ast.copy_location(call, at)


def _name(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())
