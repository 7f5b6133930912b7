"""core.ui.move.transfers: what is said of the curves."""

import pytest

from core.move.results import Transfer
from core.ui.move import transfers


@pytest.mark.parametrize(
    ("microseconds", "said"),
    [
        ((1, 16, 256), "levels out at **4.1 GB/s**"),
        (
            (1, 4, 256),
            "**16 GB/s** at 64 KB, which fits in the cache; **4.1 GB/s** at 1 MB, "
            "which doesn't.",
        ),
    ],
)
def test_a_hump_is_no_plateau(microseconds, said):
    """A curve that falls again is faster in the cache, and is said to be."""
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, (us * 1e-6,) * 5)
        for power, us in enumerate(microseconds)
    ]
    (line,) = transfers.levels(transfers.frame(measured))
    assert said in line
    assert "A copy of 4 KB takes 1 µs" in line


def test_no_cause_and_no_figure_where_repeats_differ_too_much():
    """A copy that took from one to three times as long is told as a range."""
    measured = [
        Transfer("host to host", "new memory", 4096 * 16**power, seconds)
        for power, seconds in enumerate(((1e-6,) * 5, (4e-6,) * 5, (3e-6, 3e-4) * 4))
    ]
    (line,) = transfers.levels(transfers.frame(measured))
    assert "**3.5 to 350 GB/s** at 1 MB" in line
    assert "cache" not in line
