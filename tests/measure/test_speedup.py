import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measure import speedup

SECONDS = st.lists(st.floats(0.001, 1000), min_size=3, max_size=9)


def test_speedup_is_of_the_second_over_the_first():
    found = speedup.speedup([4.0, 6.0, 9.0], [2.0, 2.0, 3.0])
    assert found.ratios == (2.0, 3.0, 3.0)
    assert (found.median, found.interval) == (3.0, (2.0, 3.0))
    assert found.winner == 1


@given(st.floats(0.1, 50), st.integers(0, 5), st.floats(0.1, 10))
def test_a_neighbour_that_comes_in_between_is_not_in_it(ratio, quiet, factor):
    load = [1.0] * quiet + [factor] * (5 - quiet)
    found = speedup.paired([ratio * each for each in load], load)
    assert found.median == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ([1, 1, 1], [2, 2, 2], 0),
        ([2, 2, 2], [1, 1, 1], 1),
        ([1, 1, 1], [0.9, 1.1, 0.9], None),  # the interval holds 1
        ([1, 1], [2, 2], None),  # too few to say
        ([1, 1, 1], [1, 1, 1], None),
    ],
)
def test_a_winner_needs_an_interval_without_1(first, second, winner):
    assert speedup.speedup(first, second).winner == winner


@given(SECONDS, SECONDS)
def test_exchanging_the_candidates_exchanges_the_winner(first, second):
    one, other = (
        speedup.speedup(first, second),
        speedup.speedup(second, first),
    )
    assert one.median * 0.999 < 1 / min(other.ratios)
    if one.winner is None:
        assert other.winner is None
    else:
        assert other.winner == 1 - one.winner


def test_confidence_is_that_of_the_sign_test():
    assert speedup.speedup([1.0] * 5, [2.0] * 5).confidence == 0.9375


def test_no_pair_is_no_speedup():
    assert speedup.speedup([], [1.0]) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(85.2e-6, "85.2 µs"), (3.41e-3, "3.41 ms"), (1.2, "1.2 s"), (4e-8, "40 ns")],
)
def test_a_measured_time_has_three_digits_and_its_unit(seconds, text):
    assert speedup.precise(seconds) == text


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
    assert speedup.times(ratio) == text
