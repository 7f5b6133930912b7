"""What is said of what answers cost."""

import pytest

from core.lessons.evaluate import costs_page as costs
from core.measure.speedup import Speedup


@pytest.mark.parametrize(
    ("ratios", "said"),
    [
        ((1.2, 1.3, 1.4), "it was 1.30 times as fast as that (1.20 to 1.40 over 3"),
        ((0.8, 0.9, 0.7), "it was 0.80 times as fast as that (0.70 to 0.90 over 3"),
        ((0.7, 1.1, 1.4), "it was 0.70 to 1.40 times as fast as that: too close"),
        ((1.2, 2.0, 3.0), "it was 1.20 to 3.0 times as fast as that; the 3 repeats"),
    ],
)
def test_a_figure_stands_alone_only_where_the_repeats_agree(ratios, said):
    assert costs.compared("it", Speedup(ratios), "that").startswith(said)
