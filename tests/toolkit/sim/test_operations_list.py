"""The device's operations against the CPU's, over PyTorch's own list of operations.

The list has sample inputs for each operation. The device runs the CPU's kernels, so
dtypes, shapes, and numbers have to be the same, and gradients, too.
"""

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map

pytestmark = pytest.mark.usefixtures("one_thread")
FEW = (torch.float16, torch.int32)  # dtypes whose promotion differs from a default's
SHARDS = 4  # tests that share the list, so that no test takes long
NO_VALUES = "empty"  # operations whose name has this part don't set the memory
OTHER = {  # operations that differ from the CPU's, or whose samples do
    "as_strided.partial_views": "a moved view has no other memory than its own",
    "tensor_split": "its indices stay on the CPU, on CUDA as well",
    "sparse.mm.reduce": "the device has no sparse tensors",
    "sparse.sampled_addmm": "the device has no sparse tensors",
    "to_sparse": "the device has no sparse tensors",
}
# The CPU has a way of its own for these, which rounds differently.
ROUNDED = ("scaled_dot_product_attention", "linear_cross_entropy")


@pytest.fixture(scope="module")
def operations() -> list[Any]:
    pytest.importorskip("expecttest")  # which PyTorch's list imports
    # Otherwise, the import forbids this process to set flags such as allow_tf32.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.backends.disable_global_flags", lambda: None)
        from torch.testing._internal.common_methods_invocations import op_db
    return op_db


def seed() -> None:
    """Seed both generators; torch.manual_seed takes longer than an operation."""
    torch.default_generator.manual_seed(0)
    torch.sim.manual_seed(0)  # type: ignore[attr-defined]


def moved(value: Any, device: str, needs_grad: bool) -> Any:
    """A copy of a sample's argument on the device."""
    if isinstance(value, Tensor):
        copy = value.detach().clone().to(device)
        return copy.requires_grad_(needs_grad and value.requires_grad)
    is_cpu = isinstance(value, str | torch.device) and value in (
        "cpu",
        torch.device("cpu"),
    )
    return torch.device(device) if is_cpu else value


def results(function: Any, sample: Any, device: str, needs_grad: bool) -> list[Any]:
    """What the function gives on a device, with the gradients of its inputs."""
    args, kwargs = tree_map(
        lambda value: moved(value, device, needs_grad),
        ((sample.input, *sample.args), sample.kwargs),
    )
    seed()
    outputs = tree_leaves(function(*args, **kwargs))
    inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    inputs = [x for x in inputs if x.requires_grad]
    ends = [x for x in outputs if isinstance(x, Tensor) and x.requires_grad]
    if inputs and ends:
        ones = [torch.ones_like(end) for end in ends]
        outputs += torch.autograd.grad(ends, inputs, ones, allow_unused=True)
    return outputs


def difference(here: list[Any], there: list[Any], name: str) -> str:
    """How the device's results differ from the CPU's; "" if they don't."""
    if len(here) != len(there):
        return f"{len(there)} results instead of {len(here)}"
    near = 0.02 if any(part in name for part in ROUNDED) else 0.0
    for theirs, ours in zip(here, there, strict=True):
        if not isinstance(theirs, Tensor):
            if ours != theirs and type(ours) is not torch.device and ours == ours:
                return f"{ours} instead of {theirs}"
        elif ours.is_cpu:
            return "a result on the CPU"
        else:
            try:
                ours, theirs = ours.detach().cpu(), theirs.detach()
                torch.testing.assert_close(
                    ours, theirs, rtol=near, atol=near, equal_nan=True
                )
            except AssertionError as error:
                return " ".join(str(error).split())[:200]
    return ""


def samples(op: Any, dtype: torch.dtype, most: int) -> list[Any]:
    if not all(dtype in op.supported_dtypes(device) for device in ("cpu", "cuda")):
        return []
    seed()
    needs_grad = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
    every = op.sample_inputs("cpu", dtype, requires_grad=needs_grad)
    return list(itertools.islice(every, most))


def differences(op: Any, dtype: torch.dtype, most: int) -> Iterator[str]:
    name = ".".join(filter(None, (op.name, op.variant_test_name)))
    if name in OTHER or NO_VALUES in name:
        return
    functions = {name: op.op, f"{name}_": op.inplace_variant}
    for (title, function), sample in itertools.product(
        functions.items(), samples(op, dtype, most)
    ):
        if function is None:
            continue
        is_op = function is op.op
        try:
            here = results(function, sample, "cpu", is_op)
        except Exception:  # the CPU refuses: not every sample fits every variant
            continue
        try:
            what = difference(here, results(function, sample, "sim", is_op), name)
        except Exception as error:
            what = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
        if what:
            yield f"{title} {dtype}: {what}"


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_operations_give_the_cpus_results(operations: list[Any], shard: int) -> None:
    """One sample of each operation; more samples and dtypes take an hour."""
    assert len(operations) > 500
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [
            what
            for op in operations[shard::SHARDS]
            for what in differences(op, torch.float16, 1)
        ]
    assert wrong == []


def operands() -> Iterator[Any]:
    """Numbers, and tensors of the dtypes with and without dimensions."""
    yield from (3, 0.7)
    for dtype, shape in itertools.product(FEW, ((), (2,))):
        yield torch.full(shape, 3, dtype=dtype)


def placed(pair: tuple[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """The pair on the device. A tensor without dimensions may stay on the CPU."""
    for stays in (None, *pair):
        there = [x for x in pair if isinstance(x, Tensor) and x is not stays]
        if there and (stays is None or (torch.is_tensor(stays) and not stays.dim())):
            yield tuple(x.to("sim") if any(x is y for y in there) else x for x in pair)


REFUSED = ("refused",)


def outcome(function: Any, pair: tuple[Any, Any]) -> tuple:
    """The dtype, shape, and values of the result, or that there is none."""
    try:
        result = function(*(x.clone() if isinstance(x, Tensor) else x for x in pair))
    except Exception:
        return REFUSED
    if result is NotImplemented:  # by an operator
        return REFUSED
    return result.dtype, result.shape, str(result.tolist())


def test_promotions_give_the_cpus_results(operations: list[Any]) -> None:
    """A number, or a tensor without dimensions, beside another tensor."""
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo

    wrong, count = [], 0
    for op in (op for op in operations if isinstance(op, BinaryUfuncInfo)):
        functions = op.op, op.operator_variant, op.inplace_operator_variant
        for function, pair in itertools.product(
            dict.fromkeys(filter(None, functions)),
            itertools.product(operands(), repeat=2),
        ):
            for there in placed(pair):
                count += 1
                here, ours = outcome(function, pair), outcome(function, there)
                # CUDA refuses some tensors on the CPU even without dimensions.
                is_mixed = any(isinstance(x, Tensor) and x.is_cpu for x in there)
                if here != ours and not (is_mixed and ours == REFUSED):
                    wrong.append(f"{op.name} {pair}: {ours} instead of {here}")
    assert count > 1000
    assert wrong == []
