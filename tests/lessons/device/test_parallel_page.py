"""What is said of multiplications at once and in a chain."""

from dataclasses import replace

import pytest

from core.lessons.device.parallel_page import Parallel
from core.lessons.device.parallel_result import (
    AT_ONCE,
    IN_TURN,
    Multiplications,
    Multiplied,
)
from tests.samples import DATE, PROCESSOR

DONE = Multiplications(
    tuple(
        Multiplied(work, way, (seconds,) * 3, "cpu")
        for work, way, seconds in (
            (AT_ONCE, "Python loop", 4e-8),
            (AT_ONCE, "One core", 1e-10),
            (IN_TURN, "Python loop", 2e-8),
            (IN_TURN, "One core", 1e-6),
        )
    ),
    2,
    PROCESSOR,
    DATE,
)


@pytest.mark.parametrize(
    ("core", "times", "right"),
    [
        ((1e-10,) * 3, "**400 times**", "10 to 1,000 times"),
        ((1e-10, 1e-11, 1e-10), "**400 to 4,000 times**", None),
    ],
)
def test_a_guess_is_judged_only_where_all_repeats_say_the_same(core, times, right):
    first, second, *rest = DONE.found
    result = replace(DONE, found=(first, replace(second, seconds=core), *rest))
    finding = Parallel().finding(result)
    assert times in finding.sentence
    assert finding.right == right
    busy = "something else was probably running" in " ".join(Parallel().lines(result))
    assert busy is (right is None)
