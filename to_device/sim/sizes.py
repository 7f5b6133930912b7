"""Run operations for their sizes alone, where a model doesn't fit this machine.

In such a pass, tensors of more than LARGE bytes have no values, and neither has what is
computed from them. PyTorch's device "meta" tells each result's size. The result's
memory is asked for, but never touched, so the system gives none. All else is as usual:
shapes, views, autograd, devices, and how much memory the simulated device counts.

Small tensors keep their values, so that counters and indices work. What a program reads
from a tensor without values is 0, and a program whose path depends on it is stopped.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

LARGE = 1 << 20  # bytes
is_on = False
_OF_CPU = ("generator", "pin_memory")  # arguments that "meta" doesn't take
# The sizes of what these operations return depend on values.
_DEPENDS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
# Gradients without values are taken to be finite, so the check leaves this argument.
_KEPT = {"_amp_foreach_non_finite_check_and_unscale_": "found_inf"}
# Methods whose result a program may only show
READS = frozenset(("__array__", "__float__", "item", "numpy", "tolist"))
# Methods of Unknown: those that return one again, and those that it refuses
COMPUTES = (
    "abs neg pos add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv "
    "mod rmod pow rpow"
)
DECIDES = "bool int index trunc eq ne lt le gt ge"
_may_read = False


class NeedsValuesError(BaseException):
    """The program's path depends on values. `except Exception` doesn't catch this."""


class Mode(TorchDispatchMode):
    """Takes the values from large tensors on the CPU, too."""

    def __torch_dispatch__(
        self, op: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():
            if any(map(_is_elsewhere, tree_leaves((args, kwargs)))):
                return op(*args, **kwargs)  # the device's fallback calls `run`
            return run(op, args, kwargs)


class Unknown(float):
    """A number that a program read from a tensor without values.

    It can be added up and printed, as losses are. Comparing it raises NeedsValuesError.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"

    def __format__(self, _: str) -> str:
        return "?"

    def __round__(self, _: Any = None) -> "Unknown":  # type: ignore[override]
        return self

    __str__ = __repr__
    __hash__ = float.__hash__


def _compute(self: Unknown, *_: Any) -> Unknown:
    return self


def _decide(*_: Any) -> Any:
    raise NeedsValuesError("a number that this pass doesn't have")


for _name in COMPUTES.split():
    setattr(Unknown, f"__{_name}__", _compute)
for _name in DECIDES.split():
    setattr(Unknown, f"__{_name}__", _decide)


@contextmanager
def reading() -> Iterator[None]:
    """Within the block, what is read from a tensor without values is 0."""
    global _may_read
    before, _may_read = _may_read, True
    try:
        yield
    finally:
        _may_read = before


def is_unknown(tensor: Tensor) -> bool:
    """Whether a tensor, on the CPU or the device, has no values."""
    with torch._C.DisableTorchFunction():
        try:
            storage: Any = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse, or a wrapper in vmap
            return False
    storage = getattr(getattr(storage, "block", None), "storage", storage)
    return hasattr(storage, "is_unknown")


def forget(tensor: Tensor) -> None:
    tensor.untyped_storage().is_unknown = True  # type: ignore[attr-defined]


def replaces_copy(target: Tensor, source: Tensor) -> bool:
    """Whether a copy between two CPU tensors is left out; then no values are there."""
    if is_on and (is_unknown(source) or is_unknown(target) or target.nbytes > LARGE):
        forget(target)
        return True
    return False


def run(op: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operation on CPU tensors, without values if it is large.

    Raises NeedsValuesError if the result's size depends on values that aren't there.
    """
    returns = [r.alias_info for r in op._schema.returns]
    is_view = any(alias and not alias.is_write for alias in returns)
    if is_view or torch.Tag.inplace_view in op.tags:
        return op(*args, **kwargs)  # touches no memory
    name = op._schema.name.removeprefix("aten::")
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    is_known = not any(map(is_unknown, tensors))
    if _depends_on_values(op, args):
        if is_known:
            return op(*args, **kwargs)
        if name == "_local_scalar_dense" and _may_read:
            return torch.zeros((), dtype=args[0].dtype).item()
        raise NeedsValuesError(f"the values that {name} needs")
    written = _written(op, args, kwargs)
    try:
        sizes = _sizes(op, args, kwargs)
    except NotImplementedError:  # "meta" lacks this operation
        if is_known:
            return op(*args, **kwargs)
        if not written:
            raise NeedsValuesError(f"the size of what {name} returns") from None
        sizes = None
    leaves = tree_leaves((sizes, written))
    if is_known and all(x.nbytes <= LARGE for x in leaves if isinstance(x, Tensor)):
        return op(*args, **kwargs)
    for argument, value in written.items():
        for tensor in tree_leaves(value):
            if isinstance(tensor, Tensor) and _KEPT.get(name) != argument:
                forget(tensor)
    results = sizes if len(returns) > 1 else (sizes,)
    targets = iter(written.values())
    new = [
        _resized(next(targets), result) if alias else tree_map(_without_values, result)
        for alias, result in zip(returns, results or (), strict=False)
    ]
    return tuple(new) if len(returns) > 1 else new[0] if new else None


def _written(op: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments that an operation changes, by their names."""
    arguments = op._schema.arguments
    given = dict(zip([a.name for a in arguments], args, strict=False)) | kwargs
    aliases = {a.name: a.alias_info for a in arguments if a.alias_info}
    return {n: given[n] for n in given if n in aliases and aliases[n].is_write}


def _sizes(op: Any, args: Any, kwargs: Any) -> Any:
    """The result on "meta": tensors with sizes only."""
    options = {k: tree_map(_on_meta, v) for k, v in kwargs.items() if k not in _OF_CPU}
    if any(argument.name == "device" for argument in op._schema.arguments):
        options["device"] = torch.device("meta")
    return op(*tree_map(_on_meta, args), **options)


def _resized(target: Any, result: Any) -> Any:
    """The tensor for out=, which an operation enlarges if it is too small."""
    if isinstance(result, Tensor) and result.shape != target.shape:
        target.resize_(result.shape)
    return target


def _depends_on_values(op: Any, args: Any) -> bool:
    if op._schema.name.startswith("aten::index"):
        indices = [x for x in tree_leaves(args[1:2]) if isinstance(x, Tensor)]
        return any(x.dtype in (torch.bool, torch.uint8) for x in indices)
    return bool(_DEPENDS & set(op.tags))


def _is_elsewhere(value: Any) -> bool:
    """Whether a value is a tensor, or names a device, that isn't the CPU."""
    device = value.device if isinstance(value, Tensor) else value
    return isinstance(device, torch.device) and device.type != "cpu"


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device="meta"
        )
    return torch.device("meta") if isinstance(value, torch.device) else value


def _without_values(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    shape, stride = value.shape, value.stride()
    tensor = torch.empty_strided(shape, stride, dtype=value.dtype, device="cpu")
    if value.nbytes <= LARGE:
        tensor.zero_()
    forget(tensor)
    return tensor
