"""Changes to a script, each of which may mend a mistake, made from its syntax.

Whether a change helps isn't known here: correction.py tries one after the other. All
other text, with its comments, stays as it is.
"""

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from core.script.device_edits import TO_CPU, DeviceEdits, Fault
from core.script.edited_script import ATOMS, OF_DEVICE, Change
from core.script.lint_rules import CLOCKS, hard_coded, is_cuda, loads_without_place
from core.script.syntax import (
    Function,
    Import,
    ParsedScript,
    callee,
    dotted,
    names_in,
    owner,
)

CHOICE = 'torch.accelerator.current_accelerator(check_available=True) or "cpu"'
WAIT = (
    "if torch.accelerator.is_available():",
    "    torch.accelerator.synchronize()",
)
OF_MODELS = ("parameters", "named_parameters", "eval", "modules")
MOST_EDITS = 16  # so many changes may be tried for one mistake
PROBABILITIES = {
    "softmax_before_loss": ("softmax", "Softmax"),
    "sigmoid_before_loss": ("sigmoid", "Sigmoid"),
}
OTHERS = DEVICE_ERROR, ON_CPU, NO_DEVICE = "device_error", "on_cpu", "no_device"


def edits(text: str, fault: Fault) -> tuple[str, ...]:
    """The script with each change that may mend the fault, the likeliest first."""
    script = Edits(text)
    found: dict[str, None] = {}
    for edited in script.edits(fault):
        if edited != script.text and _is_readable(edited):
            found[edited] = None
        if len(found) == MOST_EDITS:
            break
    return tuple(found)


def _is_readable(text: str) -> bool:
    try:
        ParsedScript(text)
    except ValueError:
        return False
    return True


class Edits(DeviceEdits):
    """What may mend a mistake of any kind."""

    def edits(self, fault: Fault) -> Iterator[str]:
        statement = self.statement(fault.line)
        if statement is None:
            return
        match fault.name:
            case "device_error" if TO_CPU.search(fault.why):
                yield from self.fetches(statement, fault)
                yield from self.moves(statement, fault)
            case "device_error":
                yield from self.moves(statement, fault)
            case "on_cpu":
                yield from self.value_moves(statement)
            case "no_device":
                yield from self._ported()
            case "cuda_hard_coded":
                yield from self._with_choice()
            case "cuda_checkpoint":
                yield from self._loads()
            case "no_zero_grad":
                yield from self._clears(statement)
            case "data_not_moved" | "labels_not_moved":
                yield from self._arrives(statement)
            case "graph_kept":
                yield from self.wrapped(self.values(statement), ".detach()")
            case "softmax_before_loss" | "sigmoid_before_loss":
                yield from self._logits(PROBABILITIES[fault.name])
            case "no_eval_mode" | "recorded" | "not_restored":
                yield from self._modes(statement, fault.name)
            case "timing_unsynchronized":
                yield from self._waits(statement)
            case "idle_optimizer":
                yield from self.later(statement)

    def _chosen(self) -> tuple[str, list[Change]]:
        """The script's name for the device, and the changes that give it one."""
        named = [
            (name, value)
            for name, value, statement in self.assignments
            if isinstance(self.place(statement), ast.Module)
            and name.isidentifier()
            and OF_DEVICE.search(name)
        ]
        written = hard_coded(self)
        for name, value in named:
            inside = list(ast.walk(value))
            if any(node in written for node in inside):
                return name, [(*self.span(value), self._choice)]
            return name, []
        body = self.tree.body[ast.get_docstring(self.tree) is not None :]
        top = [*takewhile(lambda node: isinstance(node, Import), body)]
        imports = [node for node in body if isinstance(node, Import)]
        torch = [node for node in imports if "torch" in self.words_of(node)]
        if not torch:
            return "device", []
        last = top[-1] if torch[0] in top else torch[0]
        return "device", self.after(last, "", f"device = {self._choice}")

    @property
    def _choice(self) -> str:
        """The right side of the line that chooses the device."""
        asks = re.search(r"\bdevice\.(?:type|index)\b", self.words)
        return CHOICE.replace('"cpu"', 'torch.device("cpu")') if asks else CHOICE

    def _with_choice(self) -> Iterator[str]:
        """CUDA is no longer written down, but one line chooses a device."""
        name, changes = self._chosen()
        for node in hard_coded(self) if changes else ():
            changes += self._named(node, name)
        yield self.changed(changes)

    def _named(self, node: ast.expr, name: str) -> list[Change]:
        """A variable's name in place of what names CUDA."""
        if not isinstance(node, ast.Call):
            return [(*self.span(node), name)]
        start, end = self.span(node)
        if callee(node) == "cuda":
            start = self.span(node.func)[1] - len("cuda")
            more = [f"{item.arg}={self.code(item.value)}" for item in node.keywords]
            return [(start, end, f"to({', '.join([name, *more])})")]
        if callee(node) == "device":
            return [(start, end, name)]
        values = [*node.args, *(item.value for item in node.keywords)]
        return [(*self.span(value), name) for value in values if is_cuda(value)]

    def _ported(self) -> Iterator[str]:
        """One line chooses a device, and the models are moved there."""
        name, changes = self._chosen()
        named = {owner(call) for call in self.all(*OF_MODELS)}
        models = [
            value
            for target, value, _ in self.assignments
            if target in named and isinstance(value, ast.Call)
        ]
        for value in models:
            changes += self.appended(value, f".to({name})")
        if models:
            yield self.changed(changes)

    # Mistakes that raise no error of devices

    def _loads(self) -> Iterator[str]:
        changes: list[Change] = []
        for call in loads_without_place(self):
            device = next(iter(self.devices(call)), '"cpu"')
            changes += self.with_argument(call, f"map_location={device}")
        yield self.changed(changes)

    def _clears(self, statement: ast.stmt) -> Iterator[str]:
        """The optimizer's `zero_grad` stands before `backward`, or after `step`."""
        for call in (n for n in ast.walk(statement) if callee(n) == "step"):
            line = f"{owner(call)}.zero_grad()"  # type: ignore[arg-type]
            for other in self.block(statement):
                if any(callee(part) == "backward" for part in ast.walk(other)):
                    yield self.changed(self.before(other, line))
            yield self.changed(self.after(statement, line))

    def _arrives(self, statement: ast.stmt) -> Iterator[str]:
        """What the loop draws, and the statement uses, is moved before it."""
        device, changes = self._chosen()
        loops = (node for node in self.up(statement) if isinstance(node, ast.For))
        loop = next(loops, None)
        drawn = names_in(loop.target) if loop else set()
        for name in sorted(drawn & names_in(statement)):
            line = f"{name} = {name}.to({device})"
            yield self.changed([*changes, *self.before(statement, line)])

    def _logits(self, names: tuple[str, str]) -> Iterator[str]:
        """What makes probabilities of logits goes, one at a time."""
        function, layer = names
        for call in self.all(layer):
            around = self.parents[call]
            previous = None
            if callee(around) == "Sequential" and call in around.args:  # type: ignore[attr-defined]
                place = around.args.index(call)  # type: ignore[attr-defined]
                previous = around.args[place - 1] if place else None  # type: ignore[attr-defined]
            if previous is not None:
                end = self.span(call)[1]
                yield self.changed([(self.span(previous)[1], end, "")])
            else:
                new = dotted(call.func).replace(layer, "Identity")
                yield self.changed([(*self.span(call), f"{new}()")])
        for call in self.all(function):
            inner = next(iter(call.args), None)
            if isinstance(call.func, ast.Attribute):
                module = dotted(call.func.value).partition(".")[0]
                inner = inner if module in self.imported else call.func.value
            if inner is not None:
                code = self.code(inner)
                new = code if isinstance(inner, ATOMS) else f"({code})"
                yield self.changed([(*self.span(call), new)])

    def _modes(self, statement: ast.stmt, name: str) -> Iterator[str]:
        """An evaluation sets the model's mode, or records nothing for autograd."""
        around = [statement, *self.up(statement)]
        inner = []
        for node in around:
            trains = any(callee(part) == "backward" for part in ast.walk(node))
            if trains or isinstance(node, Function | ast.ClassDef | ast.Module):
                break
            inner.append(node)
        outer = inner[-1] if inner else statement
        assert isinstance(outer, ast.stmt)
        calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
        called = [dotted(call.func) for call in calls]
        names = [*called, *map(owner, calls)]
        models = [name for name in names if name in self.models] or called[:1]
        if name == "recorded":
            for context in ("inference_mode", "no_grad"):
                yield from self._under(outer, f"with torch.{context}():")
        for model in dict.fromkeys(models if name == "no_eval_mode" else ()):
            yield self.changed(self.before(outer, f"{model}.eval()"))
        for model in dict.fromkeys(models if name == "not_restored" else ()):
            for loop in self.training_loops:
                yield self.changed(self.before(loop, f"{model}.train()"))

    def _under(self, statement: ast.stmt, header: str) -> Iterator[str]:
        """A statement moves into a block, unless it holds a string of several lines."""
        is_long = any(
            isinstance(part, ast.Constant | ast.JoinedStr)
            and part.lineno != part.end_lineno
            for part in ast.walk(statement)
        )
        first = self.starts[statement.lineno - 1]
        end, indentation = self.span(statement)[1], self.indentation(statement)
        if is_long or indentation is None:
            return
        lines = re.sub(r"(?m)^(?=[^\r\n])", "    ", self.text[first:end])
        yield self.changed(
            [(first, end, f"{indentation}{header}{self.newline}{lines}")]
        )

    def _waits(self, statement: ast.stmt) -> Iterator[str]:
        """The clock is read once the device's work is done."""
        read = {
            dotted(node.right)
            for node in ast.walk(statement)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
        }
        starts = [
            node
            for name, value, node in self.assignments
            if name in read
            and dotted(getattr(value, "func", None)) in CLOCKS
            and node.lineno < statement.lineno
        ]
        for start in starts[-1:]:
            changes = [*self.before(start, *WAIT), *self.before(statement, *WAIT)]
            yield self.changed(changes)
