"""Where each tensor was made. From this, culprit.py chooses the line to change."""

import ast
import re
import sys
import traceback
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from itertools import chain, islice, pairwise, takewhile
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from to_device.dryrun.cuda import is_device
from to_device.dryrun.script import Line, Script
from to_device.sim.stand_ins import put

SET_DATA: Any = vars(torch._C.TensorBase)["data"].__set__  # `tensor.data = ...`
UNSEEN = ("from_numpy", "frombuffer")  # torch functions that no TorchFunctionMode sees
SAME = frozenset(  # functions whose result has the input's numbers
    """
    bool clone contiguous detach double expand flatten float half int long permute
    reshape squeeze t to transpose type unsqueeze view view_as T mT H mH real data
    """.split()  # noqa: SIM905
)
ATTRIBUTES = ("T", "mT", "H", "mH", "real", "imag")  # those that make a new tensor
PARTS = ("__getitem__", "__iter__", "chunk", "narrow", "select", "split", "unbind")
# For these methods, the line of the script that calls them is remembered. It is the
# line that made the object, or that loaded the optimizer's state.
METHODS: tuple[tuple[Any, str], ...] = (
    (DataLoader, "__init__"),
    (RandomSampler, "__init__"),
    (Optimizer, "__init__"),
    (Optimizer, "load_state_dict"),
)
OF_TO = ("to", "cuda", "<listcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
# Functions that take lengths, which stay on the CPU
WITH_LENGTHS = ("_pack_padded_sequence", "_pad_packed_sequence", "ctc_loss")
LIKE = ("to", "type_as", "new_tensor")  # methods that follow another tensor's device
FILLS = ("__setitem__", "copy_")  # functions that write a tensor's values into another
# A device that is asked of a tensor, as in `device=x.device` or `.to(self.w.device)`
DEVICE_OF = re.compile(r"(?:\bdevice *= *|\.to\( *)([\w.]+)\.device\b")
# Code that returns what it moves, such as "return tensor.to(device)"
HANDS_ON = re.compile(r"return [^=]*\.(to|cuda)\([^()]*\)$")
NEAREST = 20  # so many of a moved tensor's sources count as moved with it
MEETINGS = 8  # so many lines are remembered of each tensor on the CPU
OF_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "timeout")


class Call(NamedTuple):
    """A function that was running, and the line that it had reached."""

    line: Line
    frame: int  # its frame's id
    code: CodeType


class Maker(NamedTuple):
    """A module whose `__init__` was running, and the line that it had reached."""

    line: Line
    module: Any  # a weak reference
    inner: Line  # the innermost line of the module's own methods


@dataclass(eq=False)
class Origin:
    """Where a tensor comes from.

    If a module's `__init__` made the tensor, the first call is the one that made the
    module.
    """

    tensor: Any  # a weak reference
    # The functions that were running, the innermost first, but no model's `__init__`.
    calls: list[Call]
    makers: list[Maker]  # the modules that were being made, the innermost first
    # Whether the tensor has the same numbers as its source, or one method of a model
    # made both, or computed it from an input.
    is_same: bool = False
    is_fetched: bool = False  # whether it was copied from the device to the CPU
    # The model's method that made the tensor, if the tensor was made on the CPU.
    method: CodeType | None = None
    # The last copies on the device: the line that made each, and a weak reference.
    copies: list[tuple[Line, Any]] = field(default_factory=list)
    # Where a function that moves tensors returned this tensor and hadn't made it.
    passed: Line | None = None
    # The functions that ran when a move to the CPU left the tensor as it was
    kept: list[Call] = field(default_factory=list)
    # Where the tensor's data went from the device to the CPU
    moved_back: Line | None = None
    source: "Origin | None" = None  # the origin of its input, a tensor on the CPU
    nearer: "Origin | None" = None  # with a source: the root, or one on the way to it
    # Some lines where it met another tensor on the CPU, and both had dimensions
    meetings: set[Line] = field(default_factory=set)
    parameters: "list[Origin]" = field(default_factory=list)  # beside other inputs
    filled: Line | None = None  # where it got values from the device
    loader: Line | None = None  # the loader's, if its loop got others' on the device
    # Whether it has inputs of both kinds: made by its function, and from outside
    joins: bool = False
    # Whether it comes from several tensors that its function made, from no others
    mixes: bool = False
    is_row: bool = False  # whether a loop over another tensor took it out of this one

    def __post_init__(self) -> None:
        # The function that made the oldest tensor in `chain`, if a function made it.
        self.first_function = self.function

    def take(self, inputs: "list[Origin]") -> "Origin | None":
        """Make one of the inputs the source; None if there are none.

        An input that comes from outside the function is the likeliest to be at fault.
        """
        outside = [i for i in inputs if i.first_function is not self.function]
        self.joins = bool(outside) and any(
            i.is_made_here for i in inputs if i not in outside
        )
        roots = {id(i.root) for i in inputs if i.has_dimensions}
        self.mixes = len(roots) > 1 and not outside
        if source := next(iter(outside or inputs), None):
            self.first_function = source.first_function
            self.follow(source)
        return self.source

    def follow(self, source: "Origin") -> None:
        """Make this the source, which mustn't come from the tensor itself."""
        self.source, self.nearer = source, source.root

    @property
    def root(self) -> "Origin":
        """The last origin in `chain`, without a walk through all of it."""
        root = self
        while root.nearer:
            root = root.nearer
        return root

    @property
    def line(self) -> Line:
        return self.calls[0].line

    @property
    def function(self) -> CodeType | None:
        """The function, not a comprehension in it, that made the tensor, if any.

        There is none for what a file's own lines made, whoever imported the file.
        """
        inner = takewhile(lambda call: call.code.co_name != "<module>", self.calls)
        codes = (call.code for call in inner if call.code.co_name[0] != "<")
        return next(codes, None)

    @property
    def is_made_here(self) -> bool:
        """Whether a tensor with dimensions has been made on the CPU, from no other."""
        return not self.root.is_fetched and self.has_dimensions

    @property
    def has_dimensions(self) -> bool:
        tensor = self.tensor()
        return tensor is not None and tensor.dim() > 0

    @property
    def callers(self) -> Iterator[tuple[Line, int]]:
        """For each function that returned the tensor, its caller's line and its frame.

        A method may keep the tensor in its object, so its caller doesn't count, unless
        the method returns what it makes at once.
        """
        for inner, outer in pairwise(self.calls):
            is_method = "self" in inner.code.co_varnames + inner.code.co_freevars
            if is_method and not inner.line.code.startswith("return "):
                return
            yield outer.line, inner.frame

    @property
    def results(self) -> Iterator[tuple[int, CodeType, Call]]:
        """The functions that led to the tensor: each one's frame, code, and caller.

        There are none for a model's tensors, which the model moves.
        """
        calls = [] if self.makers else self.calls
        return ((inner.frame, inner.code, outer) for inner, outer in pairwise(calls))

    @property
    def is_of_loop(self) -> bool:
        """Whether the line is a loop's first line, as for the batches of a loader.

        A loop over a tensor's rows doesn't count: the tensor has been made before.
        """
        return self.line.code.startswith("for ") and not self.is_row

    def chain(self) -> "Iterator[Origin]":
        """This origin, its source, the source's source, and so on."""
        origin: Origin | None = self
        while origin:
            yield origin
            origin = origin.source

    def with_same(self) -> "Iterator[Origin]":
        """This origin, and those before it that have the same numbers."""
        origin: Origin | None = self
        for _ in range(NEAREST):
            if origin is None:
                return
            yield origin
            origin = origin.source if origin.is_same else None


class Origins:
    """The origins of all tensors that the script's calls returned."""

    def __init__(self, script: Script, starts_processes: bool) -> None:
        self.script, self.starts_processes = script, starts_processes
        self.has_optimizer = False  # whether the script has made one
        self._of: dict[int, Origin] = {}
        # Where one of METHODS was called last, by object's id and method's name.
        self._lines: dict[tuple[int, str], Line] = {}
        # Which line last moved a tensor to the device: by the calls that made it, and
        # by the one of its `results` whose caller has the line
        self.movers: dict[tuple, Line] = {}
        # By the line that made a tensor: which line last moved it, or a tensor that was
        # computed from it, to the device.
        self.moved: dict[Line, Line] = {}
        self.moving: set[Line] = set()  # all lines that moved a tensor to the device
        # The functions, or a file's own lines, that kept on the CPU what moved later
        self._released: set[CodeType | Line] = set()
        # By the line that takes batches: the loaders, by their lines, whose batches had
        # a tensor on the device
        self._givers: dict[Line, set[Line]] = {}
        # Weak references to the data sets of the loaders, by their ids
        self._datasets: dict[int, Any] = {}

    def __iter__(self) -> Iterator[Origin]:
        origins = list(self._of.values())
        return (origin for origin in origins if origin.tensor() is not None)

    def of(self, tensor: Tensor | None) -> Origin | None:
        origin = self._of.get(id(tensor))
        return origin if origin and origin.tensor() is tensor else None

    @property
    def datasets(self) -> list[Any]:
        return [dataset() for dataset in self._datasets.values()]

    def stack(self) -> Iterator[tuple[Line, FrameType]]:
        """The script's lines that led here, the innermost first."""
        return self.script.lines(traceback.walk_stack(sys._getframe(1)))

    def here(self) -> Line | None:
        return next((line for line, _ in self.stack()), None)

    def forget(self) -> None:
        self._of.clear()
        self._lines.clear()
        self.movers.clear()
        self.moved.clear()
        self.moving.clear()
        self._released.clear()
        self._givers.clear()
        self._datasets.clear()

    def install(self) -> None:
        """Note what no TorchFunctionMode sees: parameters, batches, UNSEEN, METHODS."""
        parameter: Any = nn.Parameter
        parameter.__new__ = staticmethod(self._noting(parameter.__new__))
        variable: Any = torch.autograd.Variable
        variable.__new__ = staticmethod(self._noting(variable.__new__, is_same=True))
        for name in UNSEEN:
            put(torch, **{name: self._noting(getattr(torch, name))})
        batches: Any = _BaseDataLoaderIter
        batches.__next__ = self._noting_parts(batches.__next__)
        for kind, name in METHODS:
            setattr(kind, name, self._placing(getattr(kind, name)))

    def _noting(self, function: Any, is_same: bool = False) -> Any:
        """Note what the function returns; `is_same`: it has its argument's numbers."""

        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            arguments = [a for a in args if is_same and isinstance(a, Tensor)]
            self._note(result, arguments, is_same)
            return result

        return wrapper

    def _noting_parts(self, function: Any) -> Any:
        """Note the tensors in a batch, which a worker may have made unseen."""

        @wraps(function)
        def wrapper(*args: Any) -> Any:
            batch = function(*args)
            tensors = [leaf for leaf in tree_leaves(batch) if isinstance(leaf, Tensor)]
            for tensor in tensors:
                if self.of(tensor) is None:
                    self._note(tensor, [])
            self._note_loader(tensors, self.loaders_line(args[0]))
            return batch

        return wrapper

    def _note_loader(self, tensors: list[Tensor], loader: Line | None) -> None:
        """Remember which loaders' batches come to a line on the device."""
        if loader is None or (line := self.here()) is None:
            return
        givers = self._givers.setdefault(line, set())
        if not all(tensor.is_cpu for tensor in tensors):
            givers.add(loader)
        elif givers and loader not in givers:
            for origin in filter(None, map(self.of, tensors)):
                origin.loader = loader

    def loaders_line(self, batches: _BaseDataLoaderIter) -> Line | None:
        """The line that made the loader of these batches."""
        return self.line_of(getattr(batches, "_index_sampler", None), "loader")

    def _placing(self, method: Any) -> Any:
        @wraps(method)  # libraries read the names of a loader's arguments
        def wrapper(this: Any, *args: Any, **kwargs: Any) -> None:
            if not self.starts_processes:
                kwargs = {k: v for k, v in kwargs.items() if k not in OF_WORKERS}
            self.has_optimizer |= isinstance(this, Optimizer)
            if line := self.here():
                self._lines[id(this), method.__name__] = line
            method(this, *args, **kwargs)
            if isinstance(this, DataLoader):
                if line:  # the loader's batches know its sampler, and not the loader
                    self._lines[id(this._index_sampler), "loader"] = line
                with suppress(TypeError):  # there is no weak reference to a list
                    self._datasets[id(this.dataset)] = weakref.ref(this.dataset)

        return wrapper

    def line_of(self, this: object, method: str = "__init__") -> Line | None:
        """The line that called one of METHODS of this object."""
        return self._lines.get((id(this), method))

    def note(self, name: str, result: Any, arguments: list[Tensor]) -> None:
        """Remember where the tensors in a function's result were made."""
        is_same = name in SAME or (name in PARTS and self._method() is not None)
        if name in FILLS and len(arguments) > 1:
            self._note_filled(arguments[0], arguments[-1])
        if name not in WITH_LENGTHS:
            self._note_meeting(arguments)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and not any(tensor is a for a in arguments):
                # Indices, say, may stay on the CPU if the other tensor isn't there.
                is_move = name in LIKE or all(a.is_cpu for a in arguments)
                inputs = arguments if is_move or tensor.is_cpu else []
                self._note(tensor, inputs, is_same)
                origin = self.of(tensor) if name in PARTS else None
                if origin and origin.is_of_loop and origin.line == self.here():
                    origin.is_same = origin.is_row = True

    def _note_meeting(self, arguments: list[Tensor]) -> None:
        """Remember where tensors on the CPU met that don't share their memory."""
        met = [a for a in arguments if a.dim() > 0]
        if len(met) > 1 and all(a.is_cpu for a in met):
            if len({id(a if a._base is None else a._base) for a in met}) == 1:
                return  # a tensor and its own part, as in `x[0] *= 2`
            origins = filter(None, map(self.of, met))
            # What is expanded or reshaped meets the others as what it was before.
            same = chain.from_iterable(map(Origin.with_same, origins))
            few = [o for o in same if len(o.meetings) < MEETINGS]
            if few and (line := self.here()):
                for origin in few:
                    origin.meetings.add(line)

    def _note_filled(self, tensor: Tensor, values: Tensor) -> None:
        """Remember where a tensor on the CPU, or its view, got a device's values."""
        if tensor.is_cpu and not values.is_cpu:
            for filled in (tensor, tensor._base):
                if (origin := self.of(filled)) and origin.filled is None:
                    origin.filled = self.here()

    def note_kept(self, tensor: Tensor, arguments: list[Any]) -> None:
        """Remember where a move to the CPU left a tensor as it was."""
        names_cpu = tensor.is_cpu and any(map(is_device, arguments))
        if not names_cpu or (origin := self.of(tensor)) is None:
            return
        followed = self.of(self._followed())
        if followed is None:
            origin.kept = [
                Call(line, id(frame), frame.f_code) for line, frame in self.stack()
            ]
        elif origin not in followed.chain():
            origin.follow(followed)
            origin.is_same = True

    def has_moved(self, kept: list[Call]) -> bool:
        """Whether what a function keeps on the CPU, as a memory does, moved later."""
        return keeper(kept) in self._released

    def note_data(self, tensor: Tensor, data: Any) -> None:
        """Remember where a tensor on the device gets data on the CPU.

        A move of a model sets the data of its parameters, too.
        """
        moves = isinstance(data, Tensor) and data.is_cpu and not tensor.is_cpu
        if moves and (origin := self.of(tensor)):
            origin.moved_back = self.here()

    def note_made(self, value: Any, *_: Any) -> Any:
        """Remember where a tensor or a generator was made. Returns the value."""
        if isinstance(value, Tensor) and self.of(value) is None:
            self._note(value, [])
        elif isinstance(value, torch._C.Generator) and (line := self.here()):
            self._lines[id(value), "__init__"] = line
        return value

    def note_returned(self, value: Any, file: str, number: int) -> Any:
        """Remember which tensors a function that moves tensors returns unmoved.

        If it returns an object, the object's attributes count. A tensor that the
        function made itself doesn't count. Returns the value.
        """
        code = sys._getframe(1).f_code
        for tensor in tree_leaves([value, getattr(value, "__dict__", None)]):
            origin = self.of(tensor)
            if origin and all(call.code is not code for call in origin.calls):
                origin.passed = origin.passed or Line(file, number)
        return value

    def _method(self) -> CodeType | None:
        """The method of a model, or of an autograd function, that is running."""
        frame = next((frame for _, frame in self.stack()), None)
        is_method = frame and isinstance(receiver(frame)[1], nn.Module | FunctionCtx)
        return frame.f_code if frame and is_method else None

    def _followed(self) -> Tensor | None:
        """The tensor on the CPU whose device the line that runs asks for, if any."""
        line, frame = next(self.stack(), (None, None))
        names = DEVICE_OF.findall(line.code) if line and frame else ()
        values = (named(name, frame.f_locals) for name in names if frame)
        tensors = (value for value in values if isinstance(value, Tensor))
        return next((tensor for tensor in tensors if tensor.is_cpu), None)

    def _note(
        self, tensor: Tensor, arguments: list[Tensor], is_same: bool = False
    ) -> None:
        if (place := self._place()) is None:
            return
        hosts = [a for a in arguments if a.is_cpu]
        if (
            tensor.is_cpu
            and not arguments
            and (followed := self._followed()) is not None
        ):
            hosts, is_same = [followed], True
        is_fetched = tensor.is_cpu and len(arguments) == 1 and not hosts
        if not is_same:  # parameters count only if there are no other inputs
            hosts = [a for a in hosts if not isinstance(a, nn.Parameter)] or hosts
        origin = Origin(weakref.ref(tensor), *place, is_same, is_fetched)
        source = origin.take([host for host in map(self.of, hosts) if host])
        own = [a for a in arguments if isinstance(a, nn.Parameter)]
        if tensor.is_cpu and len(own) < len(arguments):
            origin.parameters = [found for found in map(self.of, own) if found]
        origin.method = self._method() if tensor.is_cpu else None
        if source and origin.method and not origin.is_of_loop:
            # A model's inputs are moved by its caller. Whole numbers may be lengths,
            # which stay on the CPU, even if the model computes a mask from them.
            is_input = not origin.joins and any(h.is_floating_point() for h in hosts)
            origin.is_same |= is_input or origin.method is source.method
        if source and not (tensor.is_cpu or isinstance(source.tensor(), nn.Parameter)):
            # If a class in the script has a method `to` of its own, the line that calls
            # this method counts as the one that moves the tensor. But if a line in the
            # method makes a copy and doesn't keep it, the line in the method counts.
            # For a function that returns its argument moved, it is the function's call.
            movers = (
                at
                for at, frame in self.stack()
                if (frame.f_code.co_name not in OF_TO or is_bare(at.code))
                and not hands_on(source, at, frame)
            )
            line = next(movers, origin.line)
            source.copies.append((line, origin.tensor))
            source.copies = source.copies[-4:]
            self.movers[tuple(source.calls)] = line
            self.moving.add(line)
            moving = [id(frame) for at, frame in self.stack() if at == line]
            for result in source.results:
                if result[-1].frame in moving:
                    self.movers[result] = line
            for ancestor in islice(source.chain(), NEAREST):
                self.moved[ancestor.line] = line
                if ancestor.kept:
                    self._released.add(keeper(ancestor.kept))
        self._of[id(tensor)] = origin

    def _place(self) -> tuple[list[Call], list[Maker]] | None:
        """An origin's calls and makers; None if no line of the script ran."""
        start = 0  # index in `calls` of the line that counts as making the tensor
        calls: list[Call] = []
        makers: list[Maker] = []
        frames: list[tuple[Line, FrameType]] = []
        in_loader = False
        for frame, number in traceback.walk_stack(sys._getframe(1)):
            file = frame.f_code.co_filename
            if self.script.owns(file):
                start = len(calls) if in_loader else start
                in_loader = False
                line = Line(file, number)
                calls.append(Call(line, id(frame), frame.f_code))
                frames.append((line, frame))
                if frame.f_code.co_name == "__init__":
                    name, this = receiver(frame)
                    if isinstance(this, nn.Module):
                        start = len(calls)
                        own = (at for at, f in frames if f.f_locals.get(name) is this)
                        makers.append(Maker(line, weakref.ref(this), next(own)))
            elif "torch/utils/data" in file.replace("\\", "/"):
                in_loader = True
        return (calls[min(start, len(calls) - 1) :], makers) if calls else None


def receiver(frame: FrameType) -> tuple[str, Any]:
    """The name and the value of a function's first variable: a method's object."""
    name = next(iter(frame.f_code.co_varnames), "")
    return name, frame.f_locals.get(name)


def keeper(kept: list[Call]) -> CodeType | Line:
    """The function that kept a tensor on the CPU, or a file's own line."""
    line, _, code = kept[0]
    return line if code.co_name == "<module>" else code


def named(name: str, scope: Mapping[str, Any]) -> Any:
    """What a name such as "self.layer.weight" stands for; None if that isn't known.

    No property is called.
    """
    first, *parts = name.split(".")
    value = scope.get(first)
    for part in parts:
        own = getattr(value, "__dict__", {})
        registered = [
            own.get(f"_{kind}") for kind in ("parameters", "buffers", "modules")
        ]
        held = [h for h in (own, *registered) if isinstance(h, dict) and part in h]
        value = held[0][part] if held else None
    return value


def hands_on(source: Origin, line: Line, frame: FrameType) -> bool:
    """Whether a function returns a copy of what it was given on the device.

    A model's method doesn't count: it moves its inputs for all its callers.
    """
    code = frame.f_code
    given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    return (
        bool(HANDS_ON.match(line.code))
        and not any(isinstance(value, nn.Module) for value in given)
        and any(value is one.tensor() for one in source.chain() for value in given)
    )


def is_bare(code: str) -> bool:
    """Whether code is only an expression, so that nothing uses its value."""
    try:
        return [type(node) for node in ast.parse(code).body] == [ast.Expr]
    except SyntaxError:  # the line is only a part of its statement
        return False


def parameters(optimizer: Optimizer) -> list[Tensor]:
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]
