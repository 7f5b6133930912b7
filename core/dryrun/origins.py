"""Where each tensor was made. From this, failure.py chooses the line to change."""

import dis
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.optim import Optimizer
from torch.utils._pytree import tree_leaves
from torch.utils.data import DataLoader

from core.dryrun.script import Line, Script

UNSEEN = ("from_numpy", "frombuffer")  # torch functions that no TorchFunctionMode sees
SAME = frozenset(  # functions that return the same numbers
    """
    bool clone contiguous detach double expand flatten float half int long permute
    reshape squeeze t to transpose type unsqueeze view view_as
    """.split()  # noqa: SIM905
)
PARTS = ("__getitem__", "__iter__", "chunk", "narrow", "select", "split", "unbind")
OF_TO = ("to", "cuda", "<listcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
OF_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "timeout")


@dataclass
class Origin:
    """Where a tensor comes from.

    If a module's `__init__` made the tensor, `line` is the line that made the module.
    """

    tensor: Any  # a weak reference
    line: Line
    # Lines in the `__init__` of modules, each with a weak reference to the module.
    makers: list[tuple[Line, Any]]
    # If functions returned the tensor: the line that called each, and its frame's id.
    callers: list[tuple[Line, int]]
    source: "Origin | None" = None  # the tensor on the CPU that it was computed from
    is_same: bool = False  # whether it has the same numbers as its source
    method: CodeType | None = None  # the model's method that made it on the CPU
    # Copies on the device: weak references, with the lines that made them.
    copies: list[tuple[Line, Any]] = field(default_factory=list)


class Origins:
    """The origins of all tensors that the script's calls returned."""

    def __init__(self, script: Script, starts_processes: bool) -> None:
        self.script, self.starts_processes = script, starts_processes
        self._of: dict[int, Origin] = {}
        self.loaders: list[tuple[Any, Line | None]] = []  # loaders and their samplers
        # Lines that loaded the state of an optimizer, by the optimizer's id.
        self.loaded_states: dict[int, Line] = {}
        # Where tensors were moved to the device last, by the line that made them.
        self.movers: dict[Line, Line] = {}
        # Copies of leaves that require gradients, by the lines that moved these leaves.
        self.moved_leaves: dict[Line, Any] = {}

    def of(self, tensor: Tensor) -> Origin | None:
        origin = self._of.get(id(tensor))
        return origin if origin and origin.tensor() is tensor else None

    def stack(self) -> Iterator[tuple[Line, FrameType]]:
        """The script's lines that led here, the innermost first."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if self.script.owns(frame.f_code.co_filename):
                yield Line(frame.f_code.co_filename, frame.f_lineno), frame
            frame = frame.f_back

    def here(self) -> Line | None:
        return next((line for line, _ in self.stack()), None)

    def install(self) -> None:
        """Note what a torch function mode doesn't see: parameters, loaders, swaps."""
        new: Any = nn.Parameter.__new__

        def noted(*args: Any, **kwargs: Any) -> Any:
            parameter = new(*args, **kwargs)
            self._note(parameter, [])
            return parameter

        nn.Parameter.__new__ = staticmethod(noted)  # type: ignore[method-assign]
        for name in UNSEEN:
            setattr(torch, name, self._noting(getattr(torch, name)))
        loader_class: Any = DataLoader
        init = loader_class.__init__

        def noted_loader(loader: Any, *args: Any, **kwargs: Any) -> None:
            if not self.starts_processes:
                kwargs = {k: v for k, v in kwargs.items() if k not in OF_WORKERS}
            init(loader, *args, **kwargs)
            self.loaders += [(each, self.here()) for each in (loader, loader.sampler)]

        loader_class.__init__ = noted_loader
        optimizer_class: Any = Optimizer
        load = optimizer_class.load_state_dict

        def noted_load(optimizer: Any, state: Any) -> None:
            if line := self.here():
                self.loaded_states[id(optimizer)] = line
            load(optimizer, state)

        optimizer_class.load_state_dict = noted_load
        swap: Any = torch.utils.swap_tensors

        def swapped(one: Tensor, other: Tensor) -> None:
            origin = self._of.pop(id(one), None)
            self._of.pop(id(other), None)
            if origin:
                origin.tensor = None  # torch can't swap tensors with weak references
            swap(one, other)
            if origin:
                origin.tensor = weakref.ref(one)
                self._of[id(one)] = origin

        torch.utils.swap_tensors = swapped

    def _noting(self, function: Any) -> Any:
        def noting(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            self._note(result, [])
            return result

        return noting

    def note(self, name: str, result: Any, arguments: list[Tensor]) -> None:
        """Remember where the tensors in a function's result were made."""
        is_same = name in SAME or (name in PARTS and self._method() is not None)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and not any(tensor is a for a in arguments):
                self._note(tensor, arguments, is_same)
                if name in ("to", "cuda") and tensor.requires_grad:
                    self._note_leaf(tensor, arguments[0])

    def _note_leaf(self, copy: Tensor, tensor: Tensor) -> None:
        if tensor.is_leaf and tensor.is_cpu and (line := self.here()):
            self.moved_leaves[line] = weakref.ref(copy)

    def _moving(self) -> Line | None:
        """The line that moves a tensor. A class's own `to` moves for its caller."""
        for line, frame in self.stack():
            if frame.f_code.co_name not in OF_TO:
                return line
        return None

    def _method(self) -> CodeType | None:
        """The method of a model, or of an autograd function, that is running."""
        frame = next((frame for _, frame in self.stack()), None)
        for name in frame.f_code.co_varnames[:1] if frame else ():
            if frame and isinstance(frame.f_locals.get(name), nn.Module | FunctionCtx):
                return frame.f_code
        return None

    def _note(
        self, tensor: Tensor, arguments: list[Tensor], is_same: bool = False
    ) -> None:
        if (place := self._place(sys._getframe(1))) is None:
            return
        hosts = [a for a in arguments if a.is_cpu]
        if not is_same:  # parameters count only if there are no other inputs
            hosts = [a for a in hosts if not isinstance(a, nn.Parameter)] or hosts
        source = next(filter(None, map(self.of, hosts)), None)
        origin = Origin(weakref.ref(tensor), *place, source, is_same)
        origin.method = self._method() if tensor.is_cpu else None
        if (
            source
            and not tensor.is_cpu
            and not isinstance(source.tensor(), nn.Parameter)
        ):
            line = self._moving() or origin.line
            source.copies.append((line, origin.tensor))
            source.copies = source.copies[-4:]
            self.movers[source.line] = line
        self._of[id(tensor)] = origin

    def _place(self, frame: FrameType | None) -> tuple[Line, list, list] | None:
        """An origin's line, makers, and callers; None if no line of the script ran."""
        start = 0  # index in `frames` of the line that counts as making the tensor
        frames: list[FrameType] = []
        makers: list[tuple[Line, Any]] = []
        in_loader = False
        while frame is not None:
            file = frame.f_code.co_filename
            if self.script.owns(file):
                start = len(frames) if in_loader else start
                in_loader = False
                frames.append(frame)
                if frame.f_code.co_name == "__init__":
                    this = frame.f_locals.get("self")
                    if isinstance(this, nn.Module):
                        start = len(frames)
                        makers.append((_line(frame), weakref.ref(this)))
            elif "torch/utils/data" in file.replace("\\", "/"):
                in_loader = True
            frame = frame.f_back
        if not frames:
            return None
        first, *others = frames[min(start, len(frames) - 1) :]
        callers = []
        for inner, outer in pairwise([first, *others]):
            if not _hands_over(inner.f_code):
                break
            callers.append((_line(outer), id(inner)))
        return _line(first), makers, callers


def _line(frame: FrameType) -> Line:
    return Line(frame.f_code.co_filename, frame.f_lineno)


@cache
def _hands_over(code: CodeType) -> bool:
    """Whether a function returns something; False for methods, which may keep it."""
    if "self" in code.co_varnames + code.co_freevars:
        return False
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    return any(
        name == "RETURN_VALUE" and before != ("LOAD_CONST", None)
        for before, (name, _) in pairwise(steps)
    ) or any(name == "RETURN_CONST" and value is not None for name, value in steps)
