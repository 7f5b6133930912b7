"""Training mistakes that raise no error, noticed while the script runs."""

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._pytree import tree_leaves

from core.dryrun.origins import Origins
from core.dryrun.report import Remark
from core.dryrun.script import Line
from core.sim.memory import to_host
from core.words import Words

words = Words(__file__)
REMARKS: dict[str, str] = words.table("remarks")
WITH_MODES = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
NEAR = 1e-4  # rounding error in a sum of probabilities
CATALOGUED = ("softmax_before_loss", "pickle_refused", "no_eval_mode")
SURE = ("softmax_before_loss", "pickle_refused", "idle_optimizer")


@dataclass
class Use:
    """A line that calls a model."""

    calls: int = 0
    after: int = 0  # optimizer steps before its last call
    records: bool = False  # whether autograd recorded that call
    returns: bool = False  # whether a backward pass has ever reached it
    trains: bool = False  # whether the model was in training mode, in that call
    has_modes: bool = False  # whether a layer differs between the two modes


class Remarks:
    def __init__(self, origins: Origins) -> None:
        self.here = origins.here
        self._at: dict[tuple[Line, str], None] = {}
        self._uses: dict[Line, Use] = {}
        self._depth = self._steps = 0
        # The line that made each optimizer, and its latest steps without any gradient;
        # the keys are the optimizers' ids.
        self._optimizers: dict[int, Line | None] = {}
        self._idle: Counter[int] = Counter()
        self._held: dict[int, set[int]] = {}  # the ids of each optimizer's parameters
        self._twins: Counter[int] = Counter()  # steps with the parameters of another
        self._latest: int | None = None  # the optimizer that made the latest step

    def install(self) -> None:
        """Watch models, optimizers and calls of torch.save."""
        modules = nn.modules.module
        modules.register_module_forward_pre_hook(self._enter)
        modules.register_module_forward_hook(self._leave, always_call=True)
        register_optimizer_step_pre_hook(self._step)
        optimizer_class: Any = Optimizer
        init = optimizer_class.__init__

        def noted_init(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            self._optimizers[id(optimizer)] = self.here()
            init(optimizer, *args, **kwargs)

        optimizer_class.__init__ = noted_init
        save = torch.save

        def noted_save(obj: Any, *args: Any, **kwargs: Any) -> None:
            parts = obj.values() if isinstance(obj, dict) else [obj]
            if any(isinstance(part, nn.Module) for part in parts):
                self._note(self.here(), "pickle_refused")
            save(obj, *args, **kwargs)

        torch.save = noted_save

    def _note(self, line: Line | None, slug: str) -> None:
        if line is not None:
            self._at[line, slug] = None

    def note_loss(self, name: str, given: list[Tensor]) -> None:
        """Look for a softmax before a cross entropy, by the logits' values."""
        if name != "cross_entropy" or len(given) < 2 or given[0].dim() < 2:
            return
        with torch._C.DisableTorchFunction(), torch.no_grad():
            logits = given[0] if given[0].is_cpu else to_host(given[0])
            classes = logits.float().movedim(1, -1)[0].reshape(-1, logits.shape[1])[0]
            total = classes.sum().item()
            if classes.numel() > 1 and classes.min() >= 0 and abs(total - 1) < NEAR:
                self._note(self.here(), "softmax_before_loss")

    def _enter(self, *_: Any) -> None:
        self._depth += 1

    def _leave(self, module: nn.Module, _: Any, outputs: Any) -> None:
        self._depth -= 1
        line = None if self._depth else self.here()
        if line is None or not any(True for _ in module.parameters()):
            return
        if any(f.f_code.co_name == "update_bn" for f, _ in traceback.walk_stack(None)):
            return  # update_bn needs the training mode
        use = self._uses.setdefault(line, Use())
        has_modes = any(isinstance(part, WITH_MODES) for part in module.modules())
        trained = use.trains
        use.after, use.trains, use.has_modes = self._steps, module.training, has_modes
        use.calls, use.records = use.calls + 1, False

        def come_back(_: Tensor) -> None:
            use.returns = True
            if trained and not module.training and has_modes:
                self._note(line, "not_restored")

        for output in tree_leaves(outputs):
            if isinstance(output, Tensor) and output.requires_grad:
                # A last call for a single example keeps next to nothing.
                use.records = use.calls > 1 or (output.dim() > 1 and len(output) > 1)
                output.register_hook(come_back)

    def _step(self, optimizer: Optimizer, *_: Any) -> None:
        self._steps += 1
        this, latest = id(optimizer), self._latest
        held = [p for group in optimizer.param_groups for p in group["params"]]
        self._idle[this] += 1
        if any(parameter.grad is not None for parameter in held):
            del self._idle[this]
        self._held[this], self._latest = set(map(id, held)), this
        if latest not in (None, this) and self._held[this] == self._held[latest]:
            self._twins[this] += 1

    def remarks(self) -> list[Remark]:
        """All remarks, in the order of their lines."""
        for optimizer, steps in self._idle.items():
            if steps > 1:
                self._note(self._optimizers.get(optimizer), "idle_optimizer")
        if self._twins.total() > 2:  # two optimizers take turns
            made = [line for each in self._twins if (line := self._optimizers[each])]
            self._note(max(made, default=None), "same_parameters")
        for line, use in self._uses.items():
            # A call for training is followed by a step; a last evaluation isn't.
            if self._steps and use.after == self._steps and not use.returns:
                if use.records:
                    self._note(line, "recorded")
                if use.trains and use.has_modes:
                    self._note(line, "no_eval_mode")
        return [
            Remark(
                line,
                REMARKS[key],
                key if key in CATALOGUED else "",
                key in SURE,
            )
            for line, key in sorted(self._at)
        ]
