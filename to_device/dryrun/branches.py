"""Branches that a loop runs only now and then, such as `if step % 1000 == 0:`.

A loop that is left early wouldn't come to most of them. So each comparison of a counter
with a number is observed. If one had the same result in all turns, the loop makes one
turn more, in which the comparison has the result of a later turn. Another turn follows,
which meets what the branch left behind. At the end, it is known which branches have not
run even so, and the report says it.
"""

import ast
import builtins
import operator
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

# A comparison that was made more often is not one of training steps.
MOST_OBSERVED = 50_000
OPERATORS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.eq,  # some scripts compare numbers so
    ast.IsNot: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
THRESHOLDS = operator.lt, operator.le, operator.gt, operator.ge
COUNTS = re.compile(r"\b(range|enumerate|count)\(")
# Calls that are no reason to say that a branch didn't run
PRINTS = re.compile(r"print|.*\b(write|info|debug|warning|set_\w+|add_scalars?)")
Place = tuple[str, int]  # a file and the number of a line in it


@dataclass(eq=False)
class Guard:
    """A comparison of a counter with a number, and its results so far."""

    place: Place
    counter: str  # the counter's code
    compare: Callable[[Any, Any], Any]
    has_modulus: bool  # whether the remainder of the counter is compared
    is_counter: bool  # whether the script's text says that it is a counter
    ends_loop: bool  # whether its branch does
    number: int  # in Branches.guards
    results: set[bool] = field(default_factory=set)
    first: int = 0  # the counter's first value
    last: int = -1  # its latest value
    others: tuple = ()  # what it is compared with: a modulus perhaps, then a number
    rises: bool = True  # whether the counter has never fallen, and `others` not changed
    calls: int = 0
    began: int = 0  # the numbers of its first and its latest call among those of all
    ended: int = 0
    tried: set[Place] = field(default_factory=set)  # loops that made a turn for it
    was_early: bool = False  # whether it had its other result before its turn
    whole: "Whole | None" = None  # the condition that joins it to others
    # The guards of the `if`s around it, and which result of each leads to it
    around: "Sides" = ()
    inner: "list[Guard | Whole]" = field(default_factory=list)  # those it is around

    @property
    def stays(self) -> bool:
        """Whether the result, once it has changed, stays so while the counter rises."""
        return self.compare in THRESHOLDS and not self.has_modulus

    @property
    def is_open(self) -> bool:
        """Whether a counter is compared, and the result has been the same so far."""
        return self.counts and len(self.results) == 1

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be learned of it."""
        return len(self.results) == 2 or self.was_early or not self.rises

    @property
    def needs(self) -> "Sides":
        """The guards whose results must change together, and to which."""
        return ((self, self.results != {True}), *counting(self.around))

    @property
    def counts(self) -> bool:
        grows = self.last > self.first if self.calls > 1 else self.is_counter
        return self.rises and grows

    def result(self, value: Any, *others: Any) -> Any:
        if self.has_modulus:
            modulus, remainder = others
            return self.compare(value % modulus, remainder)
        return self.compare(value, *others)

    def observe(self, now: int, result: bool, value: int, *others: int) -> None:
        if not self.calls:
            self.first, self.began, self.others = value, now, others
        is_steady = others == self.others and (not self.has_modulus or others[0] > 0)
        self.rises &= is_steady and (value >= self.last or not self.calls)
        self.results.add(result)
        self.last, self.ended, self.calls = value, now, self.calls + 1

    def values(self, low: int) -> list[int]:
        """`low`, and the numbers from there on at which the result may change."""
        beside = [self.others[-1] + more for more in (-1, 0, 1)]
        if self.has_modulus:
            modulus = self.others[0]
            beside = [low + (n - low) % modulus for n in beside if 0 <= n < modulus]
        return [low, *beside]


@dataclass(eq=False)
class Whole:
    """Guards that `and` or `or` joins, as in `step % 1000 == 0 and step > 1`.

    Each may have had both results, and never the right one together with the others.
    """

    place: Place
    wanted: bool  # the result that all guards must have: True for `and`
    guards: list[Guard]
    ends_loop: bool  # whether its branch does
    results: set[bool] = field(default_factory=set)
    ended: int = 0  # the number of its latest call
    tried: set[Place] = field(default_factory=set)  # loops that made a turn for it
    was_early: bool = False
    around: "Sides" = ()

    @property
    def is_over(self) -> bool:
        return len(self.results) == 2 or self.was_early

    @property
    def needs(self) -> "Sides":
        own = ((guard, self.wanted) for guard in self.guards if guard.calls)
        return (*own, *counting(self.around))

    @property
    def is_open(self) -> bool:
        """Whether counters are compared, and the guards never had the wanted result."""
        called = {guard.counter for guard in self.guards if guard.calls}
        are_known = called.issuperset(guard.counter for guard in self.guards)
        are_counters = all(guard.counts for guard in self.guards)
        return self.results == {not self.wanted} and are_known and are_counters


Sides = tuple[tuple[Guard, bool], ...]  # guards, and a result for each


def counting(sides: Sides) -> Sides:
    return tuple((guard, side) for guard, side in sides if guard.calls and guard.counts)


def changes(sides: Sides, most: Callable[[Guard], float]) -> bool:
    """Whether each counter comes to a number at which all its guards have their side.

    `most` is the number to which a guard's counter rises. Of guards of one counter,
    that which was asked most often tells it best.
    """
    counters: dict[str, list[tuple[Guard, bool]]] = {}
    for guard, side in sides:
        counters.setdefault(guard.counter, []).append((guard, side))
    return all(
        agree(part, most(max((guard for guard, _ in part), key=lambda g: g.calls)))
        for part in counters.values()
    )


def agree(sides: Iterable[tuple[Guard, bool]], most: float) -> bool:
    guards = [guard for guard, _ in sides]
    low = max(guard.last for guard in guards) + 1
    near = {n for guard in guards for n in guard.values(low) if n >= low}
    values = {value for n in near for guard in guards for value in guard.values(n)}
    return any(
        all(guard.result(n, *guard.others) is side for guard, side in sides)
        for n in near | values
        if low <= n <= most
    )


def turns_for(pending: Iterable[Guard | Whole]) -> list[set[Guard | Whole]]:
    """The guards in as few turns as their sides allow."""
    turns: list[tuple[set[Guard | Whole], dict[Guard, bool]]] = []
    for one in pending:
        sides = dict(one.needs)
        for together, known in turns:
            if all(known.get(guard, side) is side for guard, side in sides.items()):
                together.add(one)
                known.update(sides)
                break
        else:
            turns.append(({one}, sides))
    return [together for together, _ in turns]


@dataclass(frozen=True)
class Branch:
    """Lines of a loop that run only if a condition is met that the loop may change."""

    file: str
    first: int
    last: int
    loops: tuple[int, ...]  # the lines of the loops around it
    number: int  # in Branches.branches


@dataclass
class Pending:
    """The guards whose results change in later turns of a loop.

    Those that end the loop need a turn of their own, and so do those of which only the
    last turn changes the result: no turn follows it.
    """

    soon: list[Guard | Whole] = field(default_factory=list)
    ends: list[Guard | Whole] = field(default_factory=list)
    late: list[Guard | Whole] = field(default_factory=list)


class Branches:
    """The guards and the branches of a script's files."""

    def __init__(self) -> None:
        self.guards: list[Guard] = []
        self.wholes: list[Whole] = []
        self.branches: list[Branch] = []
        self.settled = bytearray()  # by guard: whether it needs no more observation
        self.ran = bytearray()  # by branch: whether it has run
        # Guards whose next result is the one that they haven't had so far, and wholes
        # whose guards have the wanted result
        self.armed: set[Guard | Whole] = set()
        self.now = 0  # how many observations were made

    @property
    def early(self) -> set[Place]:
        """Where a guard had its other result before its turn."""
        every: list[Guard | Whole] = [*self.guards, *self.wholes]
        return {one.place for one in every if one.was_early}

    def install(self) -> None:
        vars(builtins).update(
            __settled__=self.settled,
            __ran__=self.ran,
            __due__=self.due,
            __whole__=self.note_whole,
        )

    def due(self, number: int, *values: Any) -> Any:
        """The result of a guard's comparison, or the other one if it is armed.

        A guard whose result stays has the other one from then on.
        """
        guard = self.guards[number]
        result = guard.result(*values)
        if {type(value) for value in values} != {int} or type(result) is not bool:
            return result
        self.now += 1
        guard.observe(self.now, result, *values)
        is_armed = guard in self.armed or (guard.was_early and guard.stays)
        self.armed.discard(guard)
        if is_armed and guard.is_open:
            guard.was_early, result = True, not result
        whole = guard.whole
        if whole and whole in self.armed and result is not whole.wanted:
            whole.was_early, result = True, whole.wanted
        side = self._side(guard) if self.armed else None
        if side is not None and result is not side:
            guard.was_early, result = True, side
        is_watched = whole is not None and len(whole.results) < 2
        is_watched |= not all(inner.is_over for inner in guard.inner)
        is_over = (len(guard.results) == 2 and not is_watched) or not guard.rises
        self.settled[number] = is_over or guard.calls > MOST_OBSERVED
        return result

    def _side(self, guard: Guard) -> bool | None:
        """The result that leads to an armed guard, if this one is around it."""
        sides = (side for one in self.armed for side in one.around)
        return next((side for other, side in sides if other is guard), None)

    def note_whole(self, number: int, value: Any) -> Any:
        """Note the result of a whole condition, and return it."""
        whole = self.wholes[number]
        if len(whole.results) < 2:
            self.now += 1
            whole.ended = self.now
            # To ask a tensor whether it is true would wait for the device.
            whole.results |= {value} if type(value) is bool else {True, False}
        if value is whole.wanted:
            self.armed.discard(whole)
        return value

    def pending(
        self, since: int, turns: int, length: int | None, loop: Place, nests: bool
    ) -> Pending:
        """The guards whose results change in later turns of a loop.

        `since` is what `now` was before the loop. `length` is how many turns it has in
        all, if that is known. `nests` says that a loop in it ended early, so counters
        would have risen further than `length` says.
        """
        found = Pending()

        def last_of(guard: Guard, but: int = 0) -> float:
            """The counter's value in the last turn, or `but` turns before."""
            if length is None or guard.began <= since:
                return float("inf")
            each = max(1, (guard.last - guard.first) / max(1, turns - 1))
            return guard.last + each * (length - turns - but)

        every: list[Guard | Whole] = [*self.guards, *self.wholes]
        for one in every:
            is_tried = one.was_early or loop in one.tried
            if one.ended <= since or not one.is_open or is_tried:
                continue

            sides, before = one.needs, partial(last_of, but=1)
            if changes(sides, (lambda _: float("inf")) if nests else last_of):
                is_late = changes(sides, last_of) and not changes(sides, before)
                one.tried.add(loop)
                kind = found.late if is_late else found.soon
                (found.ends if one.ends_loop and not is_late else kind).append(one)
        return found

    def not_run(self, loops: Iterable[Place]) -> list[Branch]:
        """The branches of these loops that haven't run, but none inside another."""
        found: list[Branch] = []
        for branch in sorted(self.branches, key=lambda b: (b.file, b.first, -b.last)):
            is_inside = any(
                branch.file == other.file and branch.last <= other.last
                for other in found[-1:]
            )
            around = {(branch.file, number) for number in branch.loops}
            if not (self.ran[branch.number] or is_inside) and around.intersection(
                loops
            ):
                found.append(branch)
        return found


class Marks(ast.NodeTransformer):
    """Makes a file's guards ask Branches.due, and its branches note that they ran."""

    def __init__(self, file: str, branches: Branches, tree: ast.AST) -> None:
        self.file, self.branches = file, branches
        # The lines of the loops around the node, and what each of them assigns to
        self.loops: list[tuple[int, set[str]]] = []
        # The guards of the `if`s around the node, in the same turn of a loop, and which
        # result of each leads to the node
        self.around: Sides = ()
        self.asking: dict[ast.AST, Guard] = {}  # by the code that asks for its result
        # What the file adds to, and what its loops over ranges count
        self.counters = {
            ast.unparse(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.AugAssign)
            or (isinstance(node, ast.For) and COUNTS.search(ast.unparse(node.iter)))
            for part in stored(node.target)
        }

    def visit_For(self, loop: ast.For) -> ast.AST:
        return self._in_loop(loop)

    def visit_While(self, loop: ast.While) -> ast.AST:
        return self._in_loop(loop)

    def _in_loop(self, loop: Any) -> ast.AST:
        at = loop.iter if isinstance(loop, ast.For) else loop.test
        self.loops.append((at.lineno, set(map(ast.unparse, stored(loop)))))
        outer, self.around = self.around, ()
        self._visit_blocks(loop)
        self.around = outer
        self.loops.pop()
        return loop

    def _visit_blocks(self, node: Any) -> None:
        node.body = [self.visit(statement) for statement in node.body]
        node.orelse = [self.visit(statement) for statement in node.orelse]

    def visit_FunctionDef(self, function: ast.FunctionDef) -> ast.AST:
        outer = self.loops, self.around
        self.loops, self.around = [], ()
        self.generic_visit(function)
        self.loops, self.around = outer
        return function

    def visit_If(self, node: ast.If) -> ast.AST:
        may_change = self.loops and self._may_change(node.test)
        # A branch that only fails, or only leaves the loop, isn't worth a turn.
        if not (_fails(node.body) or _fails(node.orelse) or _only_breaks(node.body)):
            node.test = self._test(node.test, _ends(node.body))
        outer = self.around
        self.around = (*outer, *self._sides(node.test, True))
        node.body = [self.visit(statement) for statement in node.body]
        self.around = (*outer, *self._sides(node.test, False))
        node.orelse = [self.visit(statement) for statement in node.orelse]
        self.around = outer
        if may_change:
            self._mark(node.body)
            is_elif = len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
            if not is_elif:
                self._mark(node.orelse)
        return node

    def _sides(self, test: ast.expr, result: bool) -> Sides:
        """The guards in a condition whose results its own result tells."""
        if guard := self.asking.get(test):
            return ((guard, result),)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return self._sides(test.operand, not result)
        if isinstance(test, ast.Call) and ast.unparse(test.func) == "__whole__":
            return self._sides(test.args[1], result)
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is result:
            parts = (self._sides(value, result) for value in test.values)
            return tuple(side for part in parts for side in part)
        return ()

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Compare) and _modulus(node.value.left):
            node.value = self._test(node.value, False)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        value = node.value  # what a function says, such as `needs_to_log(step)`
        parts = value.values if isinstance(value, ast.BoolOp) else [value]
        if (
            any(isinstance(p, ast.Compare) and _modulus(p.left) for p in parts)
            and value
        ):
            node.value = self._test(value, False)
        return node

    def _test(self, test: ast.expr, ends_loop: bool) -> ast.expr:
        """A condition in which each guard, also one of several, asks Branches.due."""
        if isinstance(test, ast.BoolOp):
            return self._whole(test, ends_loop)
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._test(test.operand, ends_loop)
        elif _modulus(test):  # `if step % 100:` means that it isn't 0
            zero = ast.copy_location(ast.Constant(0), test)
            compare = ast.Compare(test, [ast.NotEq()], [zero])
            return self._guard(ast.copy_location(compare, test), ends_loop)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._guard(test, ends_loop)
        return test

    def _whole(self, test: ast.BoolOp, ends_loop: bool) -> ast.expr:
        """A condition that notes its result if it has several guards."""
        guards: list[Guard] = []
        for index, value in enumerate(test.values):
            test.values[index] = self._test(value, ends_loop)
            is_guard = isinstance(value, ast.Compare) or _modulus(value)
            if is_guard and test.values[index] is not value:
                guards.append(self.branches.guards[-1])
        if len(guards) < 2:
            return test
        place = self.file, test.lineno
        whole = Whole(
            place,
            isinstance(test.op, ast.And),
            guards,
            ends_loop,
            around=self.around,
        )
        for guard in guards:
            guard.whole = whole
        for outer, _ in self.around:
            outer.inner.append(whole)
        number = ast.Constant(len(self.branches.wholes))
        self.branches.wholes.append(whole)
        asks = ast.Call(ast.Name("__whole__", ast.Load()), [number, test], [])
        return ast.copy_location(asks, test)

    def _guard(self, test: ast.Compare, ends_loop: bool) -> ast.expr:
        left, right = test.left, test.comparators[0]
        compare = OPERATORS.get(type(test.ops[0]))
        parts = _modulus(left) or [left]
        names = {ast.unparse(part) for part in expressions(parts[0])}
        is_counter = bool(names & self.counters)
        is_number = isinstance(parts[0], ast.Constant)
        has_call = any(isinstance(p, ast.Call | ast.Subscript) for p in ast.walk(left))
        is_text = isinstance(right, ast.Constant) and type(right.value) is not int
        may_count = is_counter or (len(parts) == 2 and not is_number)
        if compare is None or has_call or is_text or not may_count:
            return test
        guard = Guard(
            (self.file, test.lineno),
            ast.unparse(parts[0]),
            compare,
            len(parts) == 2,
            is_counter,
            ends_loop,
            len(self.branches.guards),
            around=self.around,
        )
        for outer, _ in self.around:
            outer.inner.append(guard)
        self.branches.guards.append(guard)
        self.branches.settled.append(0)
        values = [ast.Constant(guard.number), *map(deepcopy, parts), deepcopy(right)]
        asks = ast.Call(ast.Name("__due__", ast.Load()), values, [])
        is_settled = _item("__settled__", guard.number, ast.Load())
        asking = ast.copy_location(ast.IfExp(is_settled, test, asks), test)
        self.asking[asking] = guard
        return asking

    def _may_change(self, test: ast.expr) -> bool:
        """Whether a condition depends on what a loop around it assigns to."""
        names = {ast.unparse(part) for part in expressions(test)}
        changed = self.counters.union(*(changed for _, changed in self.loops))
        return not names.isdisjoint(changed)

    def _mark(self, body: list[ast.stmt]) -> None:
        """Let a branch note that it ran, if it does more than print."""
        calls = [
            ast.unparse(part.func)
            for statement in body
            for part in ast.walk(statement)
            if isinstance(part, ast.Call)
        ]
        if _fails(body) or all(map(PRINTS.fullmatch, calls)):
            return
        first, last = body[0], body[-1]
        loops = tuple(line for line, _ in self.loops)
        number = len(self.branches.branches)
        end = last.end_lineno or last.lineno
        branch = Branch(self.file, first.lineno, end, loops, number)
        self.branches.branches.append(branch)
        self.branches.ran.append(0)
        target = _item("__ran__", number, ast.Store())
        mark = ast.Assign([target], ast.Constant(1))
        body.insert(0, ast.copy_location(mark, first))


def expressions(node: ast.AST) -> list[ast.expr]:
    return [part for part in ast.walk(node) if isinstance(part, ast.expr)]


def stored(node: ast.AST) -> list[ast.expr]:
    """The variables and attributes to which code assigns."""
    return [p for p in expressions(node) if isinstance(getattr(p, "ctx", 0), ast.Store)]


def length(iterable: Any) -> int | None:
    """How many items there are, if that is known without taking one."""
    parts = [iterable]
    with suppress(Exception):  # what these two are made of is known by their copies
        if isinstance(iterable, enumerate):
            parts = [iterable.__reduce__()[1][0]]
        elif isinstance(iterable, zip):
            parts = list(iterable.__reduce__()[1])
    numbers = []
    for part in parts:
        with suppress(Exception):
            numbers.append(operator.length_hint(part, -1))
    known = [number for number in numbers if number >= 0]
    return min(known, default=None)


def _modulus(node: ast.expr) -> list[ast.expr]:
    """The two operands of `%`; an empty list for another expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return [node.left, node.right]
    return []


def _fails(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _ends(body: list[ast.stmt]) -> bool:
    return isinstance(body[-1], ast.Break | ast.Return)


def _only_breaks(body: list[ast.stmt]) -> bool:
    calls = (p for part in body for p in ast.walk(part) if isinstance(p, ast.Call))
    return isinstance(body[-1], ast.Break) and not any(calls)


def _item(name: str, number: int, context: ast.expr_context) -> ast.Subscript:
    return ast.Subscript(ast.Name(name, ast.Load()), ast.Constant(number), context)
