"""core.measure.units: measured values as people say them."""

import pytest

from core.measure.units import precise


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(85.2e-6, "85.2 µs"), (3.41e-3, "3.41 ms"), (1.2, "1.2 s"), (4e-8, "40 ns")],
)
def test_a_measured_time_has_three_digits_and_its_unit(seconds, text):
    """Microseconds to seconds, as they are measured."""
    assert precise(seconds) == text
