import pytest
import torch

from core.lessons.speed import roofline

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_arithmetic_of_the_ann_is_that_of_its_layers():
    """Two operations a weight forward, two for its gradient, two for the input's.

    The images need no gradient, so the first layer has none to compute for them.
    """
    layers = [784 * 128, 128 * 64, 64 * 10]
    assert roofline.flops_per_image("ann") == 2 * sum([*layers, *layers, *layers[1:]])


def test_a_rate_is_operations_over_seconds(monkeypatch):
    monkeypatch.setitem(roofline.SIZES, "cpu", 10)
    monkeypatch.setattr(roofline.timing, "measure", lambda *_, **__: (1.0, 2.0))
    assert roofline.matmul_rate(torch.float32, CPU) == (2000.0, 1000.0)


def test_a_dtype_that_the_device_lacks_is_left_out(monkeypatch):

    def rate(dtype, *_):
        if dtype == torch.bfloat16:
            raise TypeError("BFloat16 is not supported on this device")
        return (1.0,)

    monkeypatch.setattr(roofline, "matmul_rate", rate)
    limit = roofline.measure("sprites", "ann", CPU, repeats=1)
    assert limit.flops_per_second == {"float32": (1.0,)}


@pytest.mark.alone
@pytest.mark.slow
def test_the_limit_is_measured_here():
    limit = roofline.measure("sprites", "ann", CPU)
    assert set(limit.flops_per_second) == {"float32", "bfloat16"}
    for readings in (*limit.flops_per_second.values(), limit.bytes_per_second):
        assert len(readings) == roofline.REPEATS
        assert min(readings) > 0
    assert limit.bytes_per_image == 784 + 8
    assert limit.bytes_per_step == 109_386 * 4 * roofline.STATE_ACCESSES
    small, large = (limit.flops_per_byte(6400, 6400 // size) for size in (64, 6400))
    assert 0 < small < large
    assert limit.roof(small / 1e9) < limit.roof(large * 1e9)
    assert limit.roof(large * 1e9) == max(limit.flops_per_second["float32"])
    assert limit.seconds(60_000, 235) > 0
