import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from core import errors
from core.config import RunConfig
from core.devices import other_than_cpu


@pytest.mark.parametrize(
    ("arguments", "advised"),
    [
        ((), False),
        ((RunConfig(batch_size=256),), True),
        ((b"a model to evaluate", RunConfig(batch_size=256)), False),
    ],
)
def test_host_memory_is_explained(arguments: tuple, advised: bool) -> None:
    """What torch says when the host has no memory becomes advice; for a training run,
    on its batch."""
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15)
    for error in (caught.value, MemoryError()):
        assert errors.is_out_of_memory(error)
        message = errors.explain(error, arguments)
        assert type(error).__name__ not in message
        assert ("256" in message) == advised


def test_a_kernel_assertion_is_explained() -> None:
    error = RuntimeError("CUDA error: device-side assert triggered\nSearch for ...")
    assert "`device-side assert triggered`" in errors.explain(error)
    assert "RuntimeError" not in errors.explain(error)


@pytest.mark.gpu
def test_device_memory_is_explained() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**15, device=other_than_cpu())
    assert errors.explain(caught.value) == errors.explain(MemoryError())


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("division by zero"), RuntimeError("no\nlong story")]
)
def test_other_errors_are_a_line(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    message = errors.explain(error)
    assert message == f"`{type(error).__name__}: {str(error).splitlines()[0]}`"
    assert caplog.records[0].exc_info is not None


def out_of_memory(batch_size: int) -> str:
    return errors.explain(MemoryError(), (RunConfig(batch_size=batch_size),))


@given(st.integers(17, 4096))
def test_smaller_batches_are_advised(batch_size: int) -> None:
    message = out_of_memory(batch_size).replace(",", "")
    given_size, advised = map(int, re.findall(r"\d+", message))
    assert given_size == batch_size
    assert advised < batch_size
    assert RunConfig(batch_size=advised).batch_size == advised


def test_no_batch_is_advised_where_none_is_smaller() -> None:
    message = out_of_memory(16)
    assert message
    assert not re.search(r"\d", message)
