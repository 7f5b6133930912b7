from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.measure import speedup
from tests.figures import figures

SECONDS = st.lists(st.floats(0.001, 1000), min_size=3, max_size=9)
OPTIONS = ("CPU", "about equal", "GPU")


@given(st.floats(0.1, 50), st.integers(0, 5), st.floats(0.1, 10))
def test_a_neighbour_that_comes_in_between_is_not_in_it(ratio, quiet, factor):
    load = [1.0] * quiet + [factor] * (5 - quiet)
    gain = speedup.paired([ratio * seconds for seconds in load], load)
    assert gain.ratio == pytest.approx(ratio)


@given(SECONDS, st.data())
def test_the_figure_is_that_of_the_bars_and_within_its_interval(first, data):
    same = st.lists(st.floats(0.001, 1000), min_size=len(first), max_size=len(first))
    second = data.draw(same)
    gain = speedup.paired(first, second)
    assert gain.ratio == median(first) / median(second)
    assert gain.interval[0] <= gain.ratio <= gain.interval[1]


@pytest.mark.parametrize(
    ("first", "second", "winner", "told", "right"),
    [
        ([1, 1, 1], [2, 2, 2], 0, "2.0 2.0 2.0 3", "CPU"),
        ([2, 2, 2], [1, 1, 1], 1, "2.0 2.0 2.0 3", "GPU"),
        # One pair of three says otherwise.
        ([1, 1, 1], [0.9, 1.1, 0.9], None, "0.91 1.11 3", None),
        ([1, 1, 1], [0.5, 1.4, 0.9], None, "0.71 2.00 3", OPTIONS),
        ([1, 1, 1], [0.3, 2, 0.5], None, "0.50 3.33 3", OPTIONS),
        ([1, 1], [2, 2], None, "0.50 0.50 2", "CPU"),
        ([1, 1, 1], [1, 1, 1], None, "1.00 1.00 3", "about equal"),
        ([1, 1, 1], [1, 1.02, 0.98], None, "0.98 1.02 3", "about equal"),
        # Sure, and so small that nobody would call it a difference.
        ([1, 1, 1], [0.95, 0.96, 0.97], 1, "1.04 1.03 1.05 3", ("GPU", "about equal")),
        ([4, 9, 10], [1, 1, 1], 1, "4.0 10.0 3", "GPU"),
        ([4, 9, 30], [1, 1, 1], 1, "4.0 3", "GPU"),  # at least 4.0
        ([1, 1, 1], [4, 9, 30], 0, "4.0 3", "CPU"),
        # Of many pairs the outermost count for nothing.
        ([2] * 8 + [0.5], [1] * 9, 1, "2.0 2.0 2.0 9", "GPU"),
        ([2] * 6 + [0.5] * 3, [1] * 9, None, "0.50 2.00 9", OPTIONS),
    ],
)
def test_a_verdict_is_as_sure_as_its_pairs(first, second, winner, told, right):
    gain = speedup.speedup(first, second)
    sentence = gain.sentence("the CPU", "GPU")
    assert gain.winner == winner
    assert figures(sentence) == told.split()
    assert gain.note in sentence
    if winner is not None:
        assert sentence.startswith(f"**{('The CPU', 'GPU')[winner]} ")
    answers = gain.answers(*OPTIONS)
    assert right is None or answers == (right if isinstance(right, tuple) else (right,))


@pytest.mark.parametrize(
    ("first", "second", "winner", "range"),
    [
        ([2, 2, 2], [1, 1, 1], 1, (1.6, 2.5)),
        ([1.2, 1.2, 1.2], [1, 1, 1], None, (0.96, 1.5)),  # another moment, no more
        ([2, 4, 4, 8], [2, 2, 2, 2], None, (2 / 1.43, 2 * 1.43)),
        ([1.9], [1], None, (0.95, 3.8)),  # nobody knows how much one reading varies
        ([3], [1], 1, (1.5, 6)),
    ],
)
def test_readings_of_different_moments_have_to_differ_by_more_than_they_vary(
    first, second, winner, range
):
    gain = speedup.unpaired(first, second)
    if len(first) == 4:
        assert gain.interval[1] / gain.ratio == speedup.unevenness(first)
        return
    assert gain.winner == winner
    assert gain.interval == pytest.approx(range)


@pytest.mark.parametrize(
    ("low", "high", "fitting"),
    [(1, 1, "a"), (2, 2, "b"), (1, 3, "ab"), (1, 30, "abc"), (11, 12, "c")],
)
def test_a_guess_fits_if_the_range_touches_it(low, high, fitting):
    assert speedup.spanned("abc", (2, 10), low, high) == tuple(fitting)


@given(SECONDS, SECONDS)
def test_exchanging_the_candidates_exchanges_the_winner(first, second):
    gain, inverse = (
        speedup.speedup(first, second),
        speedup.speedup(second, first),
    )
    assert gain.ratio == pytest.approx(1 / inverse.ratio)
    if gain.winner is None:
        assert inverse.winner is None
    else:
        assert inverse.winner == 1 - gain.winner


def test_confidence_is_that_of_the_sign_test():
    assert speedup.confidence(5, 0) == 0.9375
    assert speedup.confidence(9, 1) == 1 - 20 / 512


def test_no_pair_is_no_speedup():
    assert speedup.speedup([], [1.0]) is None


@given(st.floats(0.3, 500), st.floats(1, speedup.USELESS))
def test_a_ratio_and_its_interval_have_equally_many_decimals(ratio, factor):
    gain = speedup.Speedup(ratio, (ratio / factor, ratio * factor))
    assert len({len(text.partition(".")[2]) for text in gain.texts}) == 1
