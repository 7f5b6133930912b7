from dataclasses import replace

import pytest

from core.lessons.device.parallel_page import TIMES, Parallel
from core.lessons.device.parallel_result import AT_ONCE, SHORT_VECTORS, Multiplied
from tests.app.samples import MULTIPLIED


@pytest.mark.parametrize(
    ("core", "times", "right"),
    [
        ((1e-10,) * 3, "400 times", TIMES[1:2]),
        ((1e-10, 2e-11, 1e-10), "240 to 670 times", TIMES[1:2]),
        ((5e-11, 1e-11, 5e-11), "480 to 1,300 times", TIMES[1:]),
    ],
)
def test_a_guess_is_right_if_the_range_touches_it(core, times, right):
    first, second, *rest = MULTIPLIED.found
    result = replace(MULTIPLIED, found=(first, replace(second, seconds=core), *rest))
    finding = Parallel().finding(result)
    assert times in finding.sentence
    assert finding.right == right
    doubtful = "single repeats of" in " ".join(Parallel().lines(result))
    assert doubtful is (len(set(core)) > 1)


@pytest.mark.parametrize(
    ("short", "part"), [(2e-10, "takes 2.0 times"), (8.5e-11, "draw a conclusion")]
)
def test_short_vectors_are_never_called_faster(short, part):
    slower = Multiplied(AT_ONCE, SHORT_VECTORS, (short,) * 3, "cpu")
    lines = Parallel().lines(replace(MULTIPLIED, found=(*MULTIPLIED.found, slower)))
    assert part in " ".join(lines)
