import pytest

from core.measure import rounding


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(85.2e-6, "85.2 µs"), (3.41e-3, "3.41 ms"), (1.2, "1.2 s"), (4e-8, "40 ns")],
)
def test_a_measured_time_has_three_digits_and_its_unit(seconds, text):
    assert rounding.precise(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (25.42, "25"),
        (5.65, "5.7"),
        (9.97, "10"),
        (1.997, "2.0"),
        (1.5, "1.50"),
        (0.984, "0.98"),
        (0.0312, "0.031"),
        (1234.5, "1,200"),
    ],
)
def test_a_factor_has_two_digits_and_near_one_two_decimals(ratio, text):
    assert rounding.times(ratio) == text
