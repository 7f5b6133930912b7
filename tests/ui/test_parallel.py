"""core.ui.parallel: what is said of multiplications at once and in a chain."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.machine.results import AT_ONCE, IN_TURN, Multiplications, Multiplied
from core.ui import parallel
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
    ("core", "said"),
    [
        ((1e-10,) * 3, "**400 times** as fast as the loop. You guessed right."),
        ((1e-10, 1e-11, 1e-10), "**400 to 4,000 times** as fast as the loop."),
    ],
)
def test_a_guess_is_judged_only_where_all_repeats_say_the_same(core, said):
    """Else it is told as a range, and that something else was probably running."""

    def page(done, guessed):
        from core.ui import parallel

        parallel._judge(done, guessed)

    first, second, *rest = DONE.found
    done = replace(DONE, found=(first, replace(second, seconds=core), *rest))
    at = AppTest.from_function(page, args=(done, "10 to 1,000 times")).run()
    assert not at.exception
    (told,) = [*at.info, *at.success]
    assert told.value.endswith(said)
    busy = "something else was probably running" in " ".join(parallel.in_words(done))
    assert busy is (len(set(core)) > 1)
