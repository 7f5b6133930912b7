import pytest

from core.lessons.model.model_result import Transfer, Transfers
from core.lessons.model.transfers_page import TransfersLab


@pytest.mark.parametrize(
    ("microseconds", "sentence"),
    [
        ((1, 16, 256), "levels out at **4.1 GB/s**"),
        (
            (1, 4, 256),
            "**16 GB/s** at 64 KB, which fits in the cache; **4.1 GB/s** at 1 MB, "
            "which doesn't.",
        ),
    ],
)
def test_a_hump_is_no_plateau(microseconds, sentence):
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, (us * 1e-6,) * 5)
        for power, us in enumerate(microseconds)
    ]
    (line,) = TransfersLab().lines(Transfers(tuple(measured)))
    assert sentence in line
    assert "A copy of 4 KB takes 1 µs" in line


def test_no_cause_and_no_figure_where_repeats_differ_too_much():
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, seconds)
        for power, seconds in enumerate(((1e-6,) * 5, (4e-6,) * 5, (3e-6, 3e-4) * 4))
    ]
    (line,) = TransfersLab().lines(Transfers(tuple(measured)))
    assert "**3.5 to 350 GB/s** at 1 MB" in line
    assert "cache" not in line
