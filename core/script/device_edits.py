"""Changes to a script that may mend an error of devices."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.script.edited_script import (
    Change,
    EditedScript,
    loop_names,
    parts_of,
)
from core.script.syntax import Function, callee, dotted, owner
from to_device.dryrun.report import AFTER
from to_device.dryrun.script import COLLECTS, MOVES

NEAR = 3  # statements after one that moves a model to the CPU
FACTORIES = frozenset(
    """
    arange as_tensor asarray empty empty_like eye full full_like linspace logspace ones
    ones_like rand rand_like randint randint_like randn randn_like randperm tensor zeros
    zeros_like Generator
    """.split()  # noqa: SIM905
)
# In what a dry run says of a line: the tensor belongs on the CPU
TO_CPU = re.compile(r"\.cpu\(\)|to stay on the CPU")


@dataclass(frozen=True)
class Fault:
    """A mistake at a line of the script.

    A device error also has the line that failed, why, and the variables there that were
    on the CPU.
    """

    name: str  # what a rule or a remark is called, or one of edits.OTHERS
    line: int
    failed: int = 0
    why: str = ""
    on_cpu: tuple[str, ...] = ()


class DeviceEdits(EditedScript):
    """What may bring a tensor or a model to where the others are."""

    def moves(self, statement: ast.stmt, fault: Fault) -> Iterator[str]:
        """Changes that bring a tensor or a model to the device."""
        yield from self.kept(statement)
        if isinstance(statement, ast.For):
            names = loop_names(statement)
            yield from self._moved_names(statement, names, statement.body[0])
        yield from self._registered(statement)
        yield from self._as_beside(statement)
        if fault.why.startswith(AFTER):
            yield from self._moved_targets(statement)
        yield from self.later(statement)
        yield from self._back_again(statement)
        yield from self._models_move(statement)
        yield from self._with_device(statement)
        yield from self.value_moves(statement)
        yield from self._moved_targets(statement)
        failed = self.statement(fault.failed)
        places = filter(None, (statement, failed))
        nodes = [n for place in places for n in parts_of(place) if self._may_move(n)]
        known = [node for node in nodes if dotted(node) in fault.on_cpu]
        for node in (*known, *nodes):
            for device in self.devices(node)[:2]:
                yield from self.wrapped([node], f".to({device})")

    def _may_move(self, node: ast.AST) -> bool:
        """Whether code may be a tensor that nothing moves."""
        around = self.parents.get(node)
        is_owner = isinstance(around, ast.Attribute)  # of a method, or of an attribute
        is_called = isinstance(around, ast.Call) and around.func is node
        is_variable = isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        is_read = isinstance(getattr(node, "ctx", None), ast.Load)
        return is_variable and is_read and not (is_owner or is_called)

    def kept(self, statement: ast.stmt) -> Iterator[str]:
        """`x.to(device)` becomes `x = x.to(device)`."""
        value = statement.value if isinstance(statement, ast.Expr) else None
        calls = list(getattr(value, "elts", [value]))
        owners = [owner(call) for call in calls if isinstance(call, ast.Call)]
        moved = [callee(call) in ("to", "cuda") for call in calls]
        if all(moved) and all(owners) and len(owners) == len(calls):
            start = self.span(statement)[0]
            yield self.changed([(start, start, f"{', '.join(owners)} = ")])

    def _moved_names(
        self, at: ast.stmt, names: list[str], first: ast.stmt | None = None
    ) -> Iterator[str]:
        """Lines that move variables, after a statement or before a block's first."""
        inside = getattr(at, "body", [])
        moved = {
            name
            for node in inside
            if isinstance(node, ast.Assign) and MOVES.search(self.words_of(node))
            for name in self.goals(node)
        }
        left = [name for name in names if name not in moved] or names
        groups = [left] if len(left) > 1 else []
        groups += [[name] for name in left]
        for device in self.devices(at)[:2]:
            lines = [[f"{n} = {n}.to({device})" for n in group] for group in groups]
            if len(names) == 1:
                (name,) = names
                lines += [
                    [f"{name} = [part.to({device}) for part in {name}]"],
                    [
                        f"{name} = {{key: value.to({device}) "
                        f"for key, value in {name}.items()}}"
                    ],
                ]
            for new in lines:
                place = self.before(first, *new) if first else self.after(at, *new)
                yield self.changed(place)

    def _moved_targets(self, statement: ast.stmt) -> Iterator[str]:
        if isinstance(statement, ast.Assign):
            names = [name for name in self.goals(statement) if name != "_"]
            yield from self._moved_names(statement, names)

    def _as_beside(self, statement: ast.stmt) -> Iterator[str]:
        """A variable moves as another one does, beside it in the same function."""
        around = [a for a in self.up(statement) if isinstance(a, ast.For | Function)]
        names: list[str] = []
        for outer in around[:2]:
            if isinstance(outer, ast.For):
                names += loop_names(outer)
            elif isinstance(outer, Function):
                arguments = ast.walk(outer.args)
                names += [n.arg for n in arguments if isinstance(n, ast.arg)]
        inside = ast.walk(around[0]) if around else ()
        moving = [
            (node, name)
            for node in inside
            if isinstance(node, ast.Assign) and MOVES.search(self.words_of(node))
            for name in self.goals(node)
        ]
        moved = {name for _, name in moving}
        left = [name for name in dict.fromkeys(names) if name not in moved]
        for node, name in moving:
            if self.goals(node) == [name] and name in names:
                for other in left:
                    code = re.sub(rf"(?<![\w.]){name}\b", other, self.code(node))
                    yield self.changed(self.after(node, code))
        if moved:
            yield from self._moved_names(statement, left)

    def _registered(self, statement: ast.stmt) -> Iterator[str]:
        """A module's attribute becomes a buffer, a ModuleList, or a ParameterList."""
        if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
            return
        target, value = statement.targets[0], statement.value
        is_own = isinstance(target, ast.Attribute) and dotted(target.value) == "self"
        if not is_own or not isinstance(self.place(statement), Function):
            return
        code = self.code(value)
        nn = "nn" if "nn" in self.imported else "torch.nn"
        if isinstance(value, ast.List | ast.ListComp | ast.Tuple):
            for kind in ("ModuleList", "ParameterList"):
                yield self.changed([(*self.span(value), f"{nn}.{kind}({code})")])
        elif isinstance(value, ast.Dict | ast.DictComp):
            for kind in ("ModuleDict", "ParameterDict"):
                yield self.changed([(*self.span(value), f"{nn}.{kind}({code})")])
        else:
            name = target.attr  # type: ignore[attr-defined]
            new = f'self.register_buffer("{name}", {code})'
            yield self.changed([(*self.span(statement), new)])

    def later(self, statement: ast.stmt) -> Iterator[str]:
        """An optimizer is made only after the model was moved."""
        if not isinstance(statement, ast.Assign) or ".parameters()" not in (
            self.words_of(statement)
        ):
            return
        block = self.block(statement)
        for other in block[block.index(statement) + 1 :]:
            if MOVES.search(self.words_of(other)):
                cut = self.without(statement)
                moved = self.after(other, self.code(statement))
                if cut and moved:
                    yield self.changed([*cut, *moved])

    def _back_again(self, statement: ast.stmt) -> Iterator[str]:
        """What a line moved to the CPU goes back to the device, some lines later."""
        for call in (n for n in ast.walk(statement) if isinstance(n, ast.Call)):
            to_cpu = callee(call) == "to" and "'cpu'" in ast.unparse(call)
            if (name := owner(call)) and (callee(call) == "cpu" or to_cpu):
                block = self.block(statement)
                start = block.index(statement)
                for device in self.devices(statement)[:1]:
                    for other in block[start : start + NEAR]:
                        lines = self.after(other, f"{name}.to({device})")
                        yield self.changed(lines)

    def _models_move(self, statement: ast.stmt) -> Iterator[str]:
        """A model that a function has changed moves after the call."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            names = [dotted(argument) for argument in statement.value.args]
            for device in self.devices(statement)[:1]:
                for name in filter(None, names):
                    yield self.changed(self.after(statement, f"{name}.to({device})"))

    def _with_device(self, statement: ast.stmt) -> Iterator[str]:
        """Functions that make tensors get `device=`."""
        calls = [
            node
            for node in parts_of(statement)
            if isinstance(node, ast.Call)
            and callee(node) in FACTORIES
            and dotted(node.func).startswith("torch.")
        ]
        for device in self.devices(statement)[:2]:
            changes = [change for c in calls for change in self._placed(c, device)]
            if changes:
                yield self.changed(changes)
        if not calls:
            for call in (n for n in parts_of(statement) if isinstance(n, ast.Call)):
                if dotted(call.func).isidentifier():  # a function of the script
                    for device in self.devices(statement)[:1]:
                        yield self.changed(self._placed(call, device))

    def _placed(self, call: ast.Call, device: str) -> list[Change]:
        for item in call.keywords:
            if item.arg == "device":
                return [(*self.span(item.value), device)]
        return self.with_argument(call, f"device={device}")

    def value_moves(self, statement: ast.stmt) -> Iterator[str]:
        value = getattr(statement, "value", None)
        if isinstance(value, ast.expr) and not isinstance(
            value, ast.List | ast.Tuple | ast.Dict | ast.ListComp | ast.DictComp
        ):
            for device in self.devices(statement)[:3]:
                yield self.changed(self.appended(value, f".to({device})"))

    def fetches(self, statement: ast.stmt, fault: Fault) -> Iterator[str]:
        """Changes that bring a tensor to the CPU, or leave it there."""
        nodes = list(parts_of(statement))
        for call in (n for n in nodes if callee(n) == "numpy"):
            tensor = call.func.value  # type: ignore[attr-defined]
            for method in (".cpu()", ".detach().cpu()"):
                yield from self.wrapped([tensor], method)
        failed = self.statement(fault.failed)
        if failed is not None and failed is not statement:  # such as with lengths
            yield from self.wrapped(self.values(failed), ".cpu()")
        # What a statement makes may be put into a list, from which others read it.
        made = self.goals(statement) if isinstance(statement, ast.Assign) else []
        put = [part for call in self.all(*COLLECTS) for part in call.args]
        put = [part for part in put if dotted(part) in made]
        for method in (".item()", ".detach().cpu()"):
            yield from self.wrapped(put, method)
        values = self.values(statement)
        adds = isinstance(statement, ast.Expr) and callee(statement.value) in COLLECTS
        methods = (".item()",) if adds else ()
        for method in (*methods, ".cpu()", ".detach().cpu()"):
            yield from self.wrapped(values, method)
        for call in (n for n in nodes if isinstance(n, ast.Call)):
            if callee(call) in ("to", "cuda") and isinstance(call.func, ast.Attribute):
                start = self.span(call.func.value)[1]
                yield self.changed([(start, self.span(call)[1], "")])
