"""Training mistakes that raise no error, noticed while the script runs."""

import re
import traceback
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils._pytree import tree_leaves

from to_device.dryrun.origins import Origins, parameters
from to_device.dryrun.report import Remark
from to_device.dryrun.script import Line
from to_device.sim.memory import to_host
from to_device.sim.stand_ins import put
from to_device.words import Words

words = Words(__file__)
REMARKS: dict[str, str] = words.table("remarks")
WITH_MODES = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
WITH_DROPOUT = (nn.RNNBase, nn.MultiheadAttention)  # layers with a dropout of their own
NEAR = 1e-4  # rounding may move a sum of probabilities this far from 1
SURE = ("softmax_before_loss", "pickle_refused", "idle_optimizer")


@dataclass
class ModelUse:
    """A line that calls a model."""

    calls: int = 0
    after: int = 0  # how many optimizer steps came before the last call
    records: bool = False  # whether autograd recorded the last call
    returns: bool = False  # whether a backward pass has reached any of the calls
    trains: bool = False  # whether a layer with modes was in training mode last
    has_modes: bool = False  # whether training mode changes what a layer does
    was_last: bool = False  # whether no step came after it before a loop was to end
    samples: bool = True  # whether each call forbids autograd to record it
    # The script's lines that ran in the last call, the innermost first
    stack: tuple[Line, ...] = ()
    # By the number of steps before: how many calls autograd recorded in vain. A call is
    # one of these if its record is gone, and no backward pass has reached it.
    in_vain: Counter[int] = field(default_factory=Counter)

    @property
    def evaluates(self) -> bool:
        """Whether several recorded calls without a step between them were in vain.

        A single one, as between a GAN's steps, may be part of the training.
        """
        return any(count > 1 for count in self.in_vain.values())

    def note_gone(self, steps: int, reached: list[bool]) -> None:
        self.in_vain[steps] += not reached


class Remarks:
    def __init__(self, origins: Origins) -> None:
        self.origins, self.here = origins, origins.here
        self._at: dict[tuple[Line, str], None] = {}
        self._uses: dict[tuple[Line, bool], ModelUse] = {}  # by line and training mode
        self._around: set[Line] = set()  # lines during which an optimizer made a step
        self._evals: dict[int, Line] = {}  # by the model's id: where `eval` ran last
        self._depth = self._steps = self._stepping = 0
        self._loads = False  # whether the script has loaded a model, or its parameters
        # By the line that made an optimizer: how many steps it made, and how many came
        # right after a step of another optimizer with the same parameters.
        self._made: Counter[Line | None] = Counter()
        self._twins: Counter[Line | None] = Counter()
        # The lines of the optimizers that have found gradients in any of their steps
        self._busy: set[Line | None] = set()
        # The ids of the optimizer that made the latest step, and of its parameters.
        self._latest: tuple[int, list[int]] = 0, []

    def install(self) -> None:
        """Watch models, optimizers and calls of torch.save."""
        modules = nn.modules.module
        modules.register_module_forward_pre_hook(self._enter)
        modules.register_module_forward_hook(self._leave, always_call=True)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        save, evaluate = torch.save, nn.Module.eval
        load, load_parameters = torch.load, nn.Module.load_state_dict

        def eval_and_note(module: nn.Module) -> nn.Module:
            if line := self.here():
                self._evals[id(module)] = line
            return evaluate(module)

        def save_and_note(obj: Any, *args: Any, **kwargs: Any) -> None:
            if has_model(obj):
                self._note(self.here(), "pickle_refused")
            save(obj, *args, **kwargs)

        def load_and_note(*args: Any, **kwargs: Any) -> Any:
            loaded = load(*args, **kwargs)
            self._loads |= has_model(loaded)
            return loaded

        def load_parameters_and_note(*args: Any, **kwargs: Any) -> Any:
            self._loads = True
            return load_parameters(*args, **kwargs)

        put(torch, save=save_and_note, load=load_and_note)
        put(nn.Module, eval=eval_and_note, load_state_dict=load_parameters_and_note)

    def _note(self, line: Line | None, slug: str) -> None:
        if line is not None:
            self._at[line, slug] = None

    def note_loss(self, name: str, arguments: list[Tensor]) -> None:
        """Look for a softmax or a sigmoid before a loss that applies it itself.

        Autograd's graph shows a sigmoid. A softmax shows in the values, whose sum is 1.
        """
        if name == "binary_cross_entropy_with_logits":
            node: Any = arguments[0].grad_fn
            while re.match("Squeeze|View|Select", type(node).__name__):
                node = node.next_functions[0][0]
            if type(node).__name__.startswith("Sigmoid"):
                self._note(self.here(), "sigmoid_before_loss")
        if name != "cross_entropy" or len(arguments) < 2 or arguments[0].dim() < 2:
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            logits = arguments[0] if arguments[0].is_cpu else to_host(arguments[0])
            classes = logits.float().movedim(1, -1)[0].reshape(-1, logits.shape[1])[0]
            total = classes.sum().item()
            if classes.numel() > 1 and classes.min() >= 0 and abs(total - 1) < NEAR:
                self._note(self.here(), "softmax_before_loss")

    def _enter(self, *_: Any) -> None:
        self._depth += 1

    def _leave(self, module: nn.Module, _: Any, outputs: Any) -> None:
        self._depth -= 1
        if outputs is None:
            return  # the call raised an error, perhaps before it set its mode again
        line = None if self._depth else self._line_of(module)
        if line is None or not any(True for _ in module.parameters()):
            return
        if any(f.f_code.co_name == "update_bn" for f, _ in traceback.walk_stack(None)):
            return  # update_bn needs the training mode
        use = self._uses.setdefault((line, module.training), ModelUse())
        has_modes = any(map(acts_by_mode, module.modules()))
        trained = (line, True) in self._uses
        use.after, use.has_modes = self._steps, has_modes
        use.trains = module.training and any(
            part.training for part in module.modules() if acts_by_mode(part)
        )
        use.calls, use.records = use.calls + 1, False
        use.stack = tuple(at for at, _ in self.origins.stack())
        use.samples &= not torch.is_grad_enabled()
        reached: list[bool] = []

        def come_back(_: Tensor) -> None:
            use.returns = True
            reached.append(True)
            if trained and not module.training and has_modes:
                self._note(self._evals.get(id(module), line), "not_restored")

        for output in tree_leaves(outputs):
            if isinstance(output, Tensor) and output.requires_grad:
                # A single call with one example keeps too little memory to count.
                use.records = use.calls > 1 or (output.dim() > 1 and len(output) > 1)
                output.register_hook(come_back)
        # The record holds the function that is its hook. A call within a backward pass
        # is part of the training.
        if use.records and torch._C._current_graph_task_id() < 0:
            gone = weakref.finalize(come_back, use.note_gone, self._steps, reached)
            gone.atexit = False

    def _line_of(self, module: nn.Module) -> Line | None:
        """The script's line that called the model which the module is a part of.

        A script may call a method of the model, such as `model.predict(x)`, which then
        calls its layers.
        """
        for line, frame in self.origins.stack():
            code = frame.f_code
            this = frame.f_locals.get(next(iter(code.co_varnames), ""))
            kinds = (kind.__qualname__ for kind in type(this).__mro__)
            owner = code.co_qualname.rpartition(".")[0]
            if (
                not isinstance(this, nn.Module)
                or this is module
                or owner not in kinds
                or all(part is not module for part in this.modules())
            ):
                return line
        return self.here()

    def _after_step(self, *_: Any) -> None:
        self._stepping -= 1

    def _before_step(self, optimizer: Optimizer, *_: Any) -> None:
        self._stepping += 1
        if self._stepping > 1:
            return  # another optimizer's step calls this one
        self._steps += 1
        self._around.update(line for line, _ in self.origins.stack())
        line, tensors = self.origins.line_of(optimizer), parameters(optimizer)
        self._made[line] += 1
        if any(parameter.grad is not None for parameter in tensors):
            self._busy.add(line)
        (latest, before), ids = self._latest, sorted(map(id, tensors))
        self._latest = id(optimizer), ids
        if latest != id(optimizer) and ids == before:
            self._twins[line] += 1

    def note_end(self) -> None:
        """Note that a loop would end here, but makes another turn."""
        for use in self._uses.values():
            use.was_last |= use.after == self._steps

    def remarks(self, has_failed: bool = False) -> list[Remark]:
        """All remarks, in the order of their lines."""
        for line, steps in self._made.items():
            if steps > 1 and line not in self._busy:
                self._note(line, "idle_optimizer")
        if self._twins.total() > 2:  # two optimizers take turns
            self._note(max(filter(None, self._twins), default=None), "same_parameters")
        has_trained = bool(self._steps) or self.origins.has_optimizer
        for (line, mode), use in self._uses.items():
            # After a call for training, the optimizer makes a step. After the last
            # evaluation, it doesn't.
            is_last = use.was_last or use.after == self._steps
            if has_failed and use.records and not use.was_last:
                is_last &= use.evaluates  # else, it may be of a step that failed
            is_sample = not has_trained and self._loads and use.samples
            # A model's method that trains it also acts with it, for example.
            if use.returns or line in self._around or not (self._steps or is_sample):
                continue
            at = apart(use, self._uses.get((line, not mode))) or line
            if use.evaluates or (is_last and use.records):
                self._note(at, "recorded")
            if is_last and use.trains and use.has_modes:
                self._note(at, "no_eval_mode")
        return [
            Remark(line, REMARKS[slug], slug, slug in SURE)
            for line, slug in sorted(self._at)
        ]


def acts_by_mode(layer: nn.Module) -> bool:
    """Whether a layer computes something else in training mode."""
    if isinstance(layer, nn.RNNBase) and layer.num_layers < 2:
        return False  # its dropout is between its layers
    has_dropout = isinstance(layer, WITH_DROPOUT) and layer.dropout > 0
    return has_dropout or isinstance(layer, WITH_MODES)


def apart(use: ModelUse, other: ModelUse | None) -> Line | None:
    """The innermost line that led to a call, and not to the training's call there."""
    if other is None or not other.returns:
        return None
    return next((line for line in use.stack if line not in other.stack), None)


def has_model(value: Any) -> bool:
    """Whether a value that is saved or loaded is a model, or holds one.

    Dictionaries and lists may be nested, and may even contain themselves.
    """
    waiting, seen = [value], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, nn.Module):
            return True
        if isinstance(part, dict | list | tuple) and id(part) not in seen:
            seen.add(id(part))
            waiting += part.values() if isinstance(part, dict) else part
    return False
