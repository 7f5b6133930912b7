import pytest

from core.lessons.model.model_result import Transfer, Transfers
from core.lessons.model.transfers_page import TransfersLab
from tests.figures import figures


@pytest.mark.parametrize(
    ("microseconds", "told", "hump"),
    [
        ((1, 16, 256), ["4.1", "4", "1"], False),  # GB/s, then 4 KB and its 1 µs
        ((1, 4, 256), ["16", "64", "4.1", "1", "4", "1"], True),
    ],
)
def test_a_hump_is_no_plateau(microseconds, told, hump):
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, (us * 1e-6,) * 5)
        for power, us in enumerate(microseconds)
    ]
    (line,) = TransfersLab().lines(Transfers(tuple(measured)))
    assert figures(line) == told
    assert ("cache" in line) is hump


def test_no_cause_and_no_figure_where_repeats_differ_too_much():
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, seconds)
        for power, seconds in enumerate(((1e-6,) * 5, (4e-6,) * 5, (3e-6, 3e-4) * 4))
    ]
    (line,) = TransfersLab().lines(Transfers(tuple(measured)))
    assert figures(line)[-5:] == ["3.5", "350", "1", "4", "1"]
    assert "cache" not in line
