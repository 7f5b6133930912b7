"""What each training step waits for, copies, and keeps in memory."""

import ast
import hashlib
import linecache
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, product
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._pytree import tree_leaves

from to_device.dryrun.origins import Origins, parameters
from to_device.dryrun.report import Copy, Growth, Memory, Wait
from to_device.dryrun.script import Line, Progress
from to_device.names import SIMULATED
from to_device.sim import ledger, memory
from to_device.sim.sizes import is_unknown

CAUSES = {  # the name of a torch function, and how a script writes its call
    "__bool__": "if",
    "__repr__": "print",
    "__format__": "print",
    "__str__": "print",
    "__float__": "float()",
    "__int__": "int()",
    "__index__": "int()",
    "__getitem__": "[mask]",
    "__setitem__": "[mask] =",
    "__array__": "numpy()",
}
# An index that is one number on the device is fetched; no mask has to be counted.
OF_INDEX = {"__getitem__": "[index]", "__setitem__": "[index] ="}
# Functions that make a tensor on the device from data on the host
MAKERS = ("as_tensor", "asarray", "new_tensor", "tensor")
WAYS = (ledger.TO_DEVICE, ledger.TO_HOST)
# Kinds of memory; WORK is allocated during an optimizer's step
ACTIVATIONS, WORK = "activations", "the optimizer's own"
MOST_HASHED = 8 << 20  # bytes: the content of larger copies isn't compared
REACH, MOST_PARTS = 3, 100  # search for objects this deep, in so many list items
MOST_NODES = 20_000  # counting the nodes of a graph stops here
PARAMETER = (1 << 64) - 1  # this number has each node that stands for a parameter
MOST_STEPS = 0.75  # the share in which a graph that keeps growing grows by the same
# Growth by this many bytes per step is no mistake: scripts collect losses and other
# numbers.
FEW_NUMBERS = 4 * memory.GRANULE


class Use(NamedTuple):
    """A line of the script that waits for the device, or copies.

    `kind` is the cause of the wait, or the direction of the copy.
    """

    line: Line
    kind: str


# The uses in one step. A use's list has one entry for each wait or copy. The entry of a
# copy is the number of bytes and a digest of the content. If the content is unknown,
# the digest is an object that equals no other.
Step = defaultdict[Use, list[tuple[int, Any]]]


class Copied(NamedTuple):
    """A copy on the device, and where its use's list in `Step` has its entry."""

    tensor: Any  # a weak reference
    version: int  # as PyTorch counts what writes to a tensor
    entries: list[tuple[int, Any]]
    place: int


@dataclass(eq=False)
class Piece:
    """Memory that one tensor takes."""

    size: int
    line: Line | None
    step: int  # the step in which the tensor was made
    kind: str = ""


@dataclass
class Peak:
    """The most memory that was in use at once."""

    size: int = 0  # bytes
    step: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def parts(self) -> Counter[str]:
        """How many bytes the pieces of each kind take."""
        parts: Counter[str] = Counter()
        for piece in self.pieces:
            of_step = piece.step == self.step
            parts[piece.kind or (ACTIVATIONS if of_step else "the rest")] += piece.size
        return parts


class Steps:
    def __init__(self, most: int, origins: Origins, whole: bool = False) -> None:
        """Examine `most` steps after the first, or treat the whole run as one step."""
        self.most, self.origins = most, origins
        self.whole = whole
        self.count = 0  # how many steps the optimizer has made
        self.calls = 0  # how often layers with parameters were called
        self._work = 0  # see Progress.work
        self._depth = 0  # how many models' forward passes run
        self.current: Step = defaultdict(list)
        self.done = [self.current] if whole else []
        self._ends: list[int] = []  # bytes still allocated at the end of each step
        self.batch = 0  # rows of the model's last input
        self.peak = self._peak_of_passes = Peak()
        self._in_step = False
        # Result of `graphs` after each step
        self._graphs: list[dict[Line, set[int]]] = []
        self.name = ""  # the function of torch that is being called
        self.arguments: list[Tensor] = []  # the tensors among its arguments
        self._copied: list[tuple[int, Any]] | None = None  # the call's copy is its last
        self._copies: dict[int, Copied] = {}  # of this step, by the tensor's id
        self._live: dict[int, Piece] = {}
        # If the latest step trains only on the CPU, one of its parameters; else None.
        self.on_cpu: Tensor | None = None
        # The optimizer whose steps are counted; once it is gone, the next one
        self._optimizer: Callable[[], Optimizer | None] = lambda: None
        self._was_called = False  # whether this step called the model

    def install(self) -> None:
        """Watch optimizers, and the device's memory, waits, and copies."""
        register_optimizer_step_pre_hook(self._before)
        register_optimizer_step_post_hook(self._after)
        hooks = nn.modules.module
        hooks.register_module_forward_pre_hook(self._note_call)
        hooks.register_module_forward_hook(self._note_return, always_call=True)
        steps, of_device = self, memory.Block

        class Block(of_device):  # type: ignore[valid-type,misc]
            def __init__(self, storage: torch.UntypedStorage) -> None:
                super().__init__(storage)
                self.piece = Piece(self.size, steps.origins.here(), steps.count)
                steps._note_piece(self.piece)

            def __del__(self) -> None:
                super().__del__()
                if hasattr(self, "piece"):
                    steps._live.pop(id(self.piece), None)

        memory.Block = Block  # type: ignore[misc]
        ledger.wait = self._wait
        ledger.copy = self._copy

    @contextmanager
    def calling(self, name: str, arguments: list[Tensor]) -> Iterator[None]:
        """Mark the block as a call of this function of torch.

        If the function calls others, their waits and copies count as its own.
        """
        outer = self.name, self.arguments
        self._work += 1
        if not self.name:
            self.name, self.arguments, self._copied = name, arguments, None
        try:
            yield
        finally:
            self.name, self.arguments = outer

    def _wait(self, why: str) -> None:
        if line := self.origins.here():
            cause = f".{why}()" if why in ("item", "nonzero", "synchronize") else why
            if self.name == "__getitem__" and why == "copy to device":
                cause = "indices from the CPU"
            elif self.name == "__setitem__" and why.startswith("copy"):
                cause = why  # no mask has to be counted
            elif self.name in ("to", "cuda") and why == "copy to device":
                pinned = any(tensor.is_pinned() for tensor in self.arguments)
                way = "without non_blocking" if pinned else "from unpinned memory"
                cause = f"a copy {way}"
            elif why == "item" and self.name in OF_INDEX:
                cause = OF_INDEX[self.name]
            elif why != "synchronize" and self.name in CAUSES:
                cause = CAUSES[self.name]
            elif self.name in ("cpu", "tolist", "numpy", "item"):
                cause = f".{self.name}()"
            self.current[Use(line, cause)].append((0, None))

    def _copy(self, way: str, size: int) -> None:
        if (line := self.origins.here()) and way != ledger.WITHIN:
            digest: Any = object()
            is_alone = len(self.arguments) == 1 and self.arguments[0].is_cpu
            if way == ledger.TO_DEVICE and is_alone:
                digest = digest_of(self.arguments[0])
            entries = self.current[Use(line, way)]
            entries.append((size, digest))
            self._copied = entries if way == ledger.TO_DEVICE else None

    def note_result(self, name: str, result: Any, arguments: list[Tensor]) -> None:
        """Note which tensor a copy became, and which copies a call has written to.

        A copy that is written to isn't one to make once, so it equals no other.
        """
        for tensor in arguments if self._copies else ():
            with suppress(RuntimeError):  # a tensor for inference counts no versions
                base = tensor if tensor._base is None else tensor._base
                copy = self._copies.get(id(base))
                if copy and copy.tensor() is base and base._version > copy.version:
                    size, _ = copy.entries[copy.place]
                    copy.entries[copy.place] = size, object()
        entries, self._copied = self._copied, None
        if entries is None or not isinstance(result, Tensor) or result.is_cpu:
            return
        if name in MAKERS:
            entries[-1] = entries[-1][0], digest_of(result)
        with suppress(RuntimeError):
            version, ref = result._version, weakref.ref(result)
            self._copies[id(result)] = Copied(ref, version, entries, len(entries) - 1)

    def _note_piece(self, piece: Piece) -> None:
        self._live[id(piece)] = piece
        self._work += piece.size >> 16
        # An optimizer's step may call a closure, with a forward and a backward pass.
        in_pass = torch.is_grad_enabled() or torch._C._current_graph_task_id() >= 0
        piece.kind = WORK if self._in_step and not in_pass else ""
        if memory.allocated > self.peak.size:
            self.peak = self._peak_now()
        if not self._in_step and memory.allocated > self._peak_of_passes.size:
            self._peak_of_passes = self._peak_now()

    def _peak_now(self) -> Peak:
        return Peak(memory.allocated, self.count, list(self._live.values()))

    def progress(self) -> Progress:
        work = self._work + ledger.counts.operations.total()
        return Progress(self.count, self.calls, work, self._depth > 0)

    def _note_return(self, *_: Any) -> None:
        self._depth -= 1

    def _note_call(self, module: nn.Module, inputs: tuple) -> None:
        # Before the first step, a model in training mode may fill a replay buffer. A
        # loop with gradients trains, and ends early even if the script has no step.
        acts = module.training and not torch.is_grad_enabled()
        fills = acts and self.origins.has_optimizer and not self.count
        if not fills and has_parameters(module):
            self.calls += 1
        self._depth += 1
        if self._depth == 1:
            # No optimizer may have them, or they have come back from the CPU. A class
            # may have a method `parameters` of its own.
            for parameter in nn.Module.parameters(module):
                _mark(parameter, "parameters")
        is_outermost, self._was_called = not self._was_called, True
        batch = inputs[0] if inputs and isinstance(inputs[0], Tensor) else None
        if is_outermost and module.training and batch is not None and batch.dim():
            self.batch = batch.shape[0]

    def _before(self, optimizer: Optimizer, *_: Any) -> None:
        """Mark memory of parameters, and of gradients before they are freed."""
        self._in_step = True
        tensors = parameters(optimizer)
        trained = [tensor for tensor in tensors if tensor.grad is not None]
        self.on_cpu = trained[0] if {t.is_cpu for t in trained} == {True} else None
        for parameter in tensors:
            _mark(parameter, "parameters")
            _mark(parameter.grad, "gradients")

    def _after(self, optimizer: Optimizer, *_: Any) -> None:
        self._in_step = False
        for value in tree_leaves(list(optimizer.state.values())):
            _mark(value, "optimizer state")
        if self._optimizer() is None:
            self._optimizer = weakref.ref(optimizer)
        if self._optimizer() is not optimizer:
            return
        self.count += 1
        self._was_called = False
        self._copies.clear()
        if self.count <= self.most + 1:
            self._graphs.append(graphs(self.origins.stack()))
        if not self.whole:
            if self.count <= self.most + 1:
                self.done.append(self.current)
                self._ends.append(memory.allocated)
            self.current = defaultdict(list)

    def waits(self) -> list[Wait]:
        return [
            Wait(use.line, use.kind, min(map(len, steps)))
            for use, steps in self._in_each().items()
            if use.kind not in WAYS
        ]

    def copies(self) -> list[Copy]:
        return [
            Copy(
                use.line,
                use.kind,
                times=min(map(len, steps)),
                bytes=min(sum(size for size, _ in copies) for copies in steps),
                same=len(steps) > 1 and len(set(map(frozenset, steps))) == 1,
            )
            for use, steps in self._in_each().items()
            if use.kind in WAYS
        ]

    def _in_each(self) -> dict[Use, list[list[tuple[int, Any]]]]:
        """For each use that all measured steps have, its list from each step.

        The first step isn't measured: optimizers make their state in it, and what the
        script did before it counts as its own.
        """
        measured = self.done if self.whole else self.done[1:]
        common = set.intersection(*map(set, measured)) if measured else set()
        return {use: [step[use] for step in measured] for use in sorted(common)}

    def growth(self) -> Growth | None:
        """How memory or a graph grows with each step; None if neither grows."""
        more = _differences(self._ends[1:])
        keepers: list[Line | None] = list(self._keepers())
        if not keepers and (len(more) < 2 or min(more) <= FEW_NUMBERS):
            return None
        sizes: Counter[Line | None] = Counter()
        for piece in list(self._live.values()):
            if not piece.kind and 0 < piece.step < self.count - 1:
                sizes[piece.line] += piece.size
        if not (keepers or sizes):
            return None  # the newest step is larger, as with a longer sentence
        del sizes[None]
        line, *also = keepers or [max(sizes, key=sizes.__getitem__, default=None)]
        each = sum(more) // max(1, len(more))
        return Growth(each, line, bool(keepers), tuple(filter(None, also)))

    def _keepers(self) -> Iterator[Line]:
        """The lines whose variables keep a larger graph after each step.

        A sum that begins anew with each epoch grows by the same in most steps.
        """
        measured = self._graphs[1:]
        for line in measured[-1] if len(measured) > 1 else ():
            kept = [graph.get(line, set()) for graph in measured]
            # A graph of its own may be larger by chance, as for a longer sentence.
            more = [(len(b) - len(a)) * bool(a & b) for a, b in pairwise(kept)]
            usual, times = Counter(more).most_common(1)[0]
            if min(more) > 0 or (usual > 0 and times >= MOST_STEPS * len(more)):
                yield line

    def memory(self, limit: int | None) -> Memory:
        """The peak of memory, its parts, and whether it fits into `limit` bytes."""
        parts = self.peak.parts() if self.count else {}
        fits = None if limit is None else self.peak.size <= limit
        passes, largest = self._peak_of_passes, None
        if limit and self.batch and (grows := passes.parts()[ACTIVATIONS]):
            largest = (limit - (passes.size - grows)) * self.batch // grows
            largest = 0 if self.peak.parts()[WORK] and not fits else max(0, largest)
        return Memory(self.peak.size, dict(parts), limit, fits, self.batch, largest)


def digest_of(tensor: Tensor) -> Any:
    """A digest of a tensor's content, or if it isn't known, what equals no other."""
    # A sparse or lazy tensor, or one in vmap, can't be read as bytes.
    with suppress(Exception), torch._C.DisableTorchFunction():
        if tensor.nbytes <= MOST_HASHED and not is_unknown(tensor):
            host = tensor if tensor.is_cpu else memory.to_host(tensor)
            flat = host.detach().resolve_conj().reshape(-1)
            content = flat.view(torch.uint8).numpy().tobytes()
            return hashlib.blake2b(content).digest()
    return object()


def has_parameters(module: nn.Module) -> bool:
    """Whether a module, without those inside, has parameters, perhaps in a list."""
    lists = nn.ParameterList, nn.ParameterDict
    inner = [part for part in module._modules.values() if isinstance(part, lists)]
    # A class may have a method `parameters` of its own.
    found = (p for part in (module, *inner) for p in part._parameters.values())
    return any(parameter is not None for parameter in found)


def _differences(numbers: list[int]) -> list[int]:
    return [b - a for a, b in pairwise(numbers)]


def _mark(tensor: Any, kind: str) -> None:
    if isinstance(tensor, Tensor) and tensor.device.type == SIMULATED:
        block = getattr(tensor.untyped_storage(), "block", None)
        if block is not None and hasattr(block, "piece"):
            block.piece.kind = kind


def graphs(frames: Iterable[tuple[Line, FrameType]]) -> dict[Line, set[int]]:
    """For each line that adds to a variable, which graph nodes the variable keeps.

    The nodes are those of autograd's graph that lead to the variable's tensors. Each
    stands for itself by the number that autograd gives it, so none is kept for this.
    """
    found: defaultdict[Line, set[int]] = defaultdict(set)
    for line, frame in frames:
        variables = {**frame.f_globals, **frame.f_locals}
        objects = objects_of_script(variables.values())
        scopes = [variables, *({"self": value} for value in objects)]
        for (number, target), scope in product(additions(line.file), scopes):
            try:
                value = eval(target, scope)
            except Exception:  # another function's variable, or the script's own error
                continue
            ends = [t for t in tree_leaves(value) if isinstance(t, Tensor)]
            nodes = nodes_of([t.grad_fn for t in ends])
            numbers = (node._sequence_nr() for node in nodes)
            found[Line(line.file, number)].update(n for n in numbers if n < PARAMETER)
    return dict(found)


def objects_of_script(values: Iterable[Any]) -> list[Any]:
    """Objects of the script's own classes, up to a few levels inside values."""
    objects: dict[int, Any] = {}
    level = list(values)
    for _ in range(REACH + 1):
        own = [value for value in level if type(value).__module__ == "__main__"]
        objects |= {id(value): value for value in own}
        level = [part for value in level for part in parts(value)]
    return list(objects.values())


def parts(value: Any) -> list[Any]:
    """What a dictionary, a list, or an object of the script's own classes holds."""
    if isinstance(value, list | tuple):
        return list(value[:MOST_PARTS])
    if type(value).__module__ == "__main__":
        value = getattr(value, "__dict__", {})
    return list(value.values()) if isinstance(value, dict) else []


def nodes_of(ends: list[Any]) -> set[Any]:
    """All nodes of autograd's graph that lead to `ends`, including these."""
    nodes: set[Any] = set()
    waiting = [end for end in ends if end is not None]
    while waiting and len(nodes) < MOST_NODES:
        node = waiting.pop()
        if node not in nodes:
            nodes.add(node)
            waiting += [before for before, _ in node.next_functions if before]
    return nodes


@cache
def additions(file: str) -> list[tuple[int, CodeType]]:
    """Find statements that add to a variable: `a += b`, `a = f(a, b)`, `a.append(b)`.

    Returns each statement's line number, and compiled code that evaluates the variable.
    """
    places = []
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
            target = node.target
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            names = {ast.unparse(part) for part in ast.walk(node.value)}
            target = target if ast.unparse(target) in names else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            adds = node.func.attr in ("append", "extend", "add")
            target = node.func.value if adds else None
        while isinstance(target, ast.Subscript):
            target = target.value  # the index may use another function's variables
        if target is not None:
            code = compile(ast.unparse(target), file, "eval")
            places.append((node.lineno, code))  # type: ignore[attr-defined]
    return places
