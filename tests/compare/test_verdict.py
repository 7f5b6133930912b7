"""core.compare.results: who wins, by how much, and when nobody does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.compare import candidates, results, verdict
from core.compare.candidates import Candidate
from core.compare.results import CandidateFailure, Cell, Race, StepProfile, Trial
from core.config import RunConfig
from core.measure import speedup
from core.results import LossPoint
from tests.samples import machine

GPU = Candidate("cuda", "CUDA", "Testing card", 3)
ONE, TWO = candidates.cpu(1), candidates.cpu(2)
SECONDS = st.lists(st.floats(0.001, 1000), min_size=3, max_size=9)


def a_race(first, second, pair=(ONE, TWO), failures=(), model="ann", losses=((), ())):
    """A race with the given seconds of training in its counted heats."""
    trials = [
        Trial(c, repeat, 10, seconds, 640, seconds / 10, 1000, None, losses[c])
        for c, taken in enumerate((first, second))
        for repeat, seconds in enumerate([99.0, *taken])
    ]
    config = RunConfig(model=model)
    return Race(pair, (None, None), config, 10, 3, tuple(trials), failures, "2026")


def test_without_an_accelerator_one_thread_races_all():
    """The default pair on a CPU is one thread against every usable core."""
    found = candidates.candidates(machine("CPU", cores=6))
    assert [each.threads for each in found] == [6, 5, 2, 1]
    first, second = candidates.default_pair(found)
    assert (first.threads, second.threads) == (1, 6)


def test_with_an_accelerator_it_races_the_cpu():
    """The CPU gets the threads that the app trains with, not one."""
    found = candidates.candidates(machine("CUDA", "CPU", cores=8))
    first, second = candidates.default_pair(found)
    assert (first.device, first.threads, second.device) == ("cpu", 7, "cuda")
    assert first in found


def test_one_core_races_itself_under_two_names():
    """A machine with a single contender still has a pair, which can be told apart."""
    found = candidates.candidates(machine("CPU", cores=1))
    first, second = candidates.tell_apart(*candidates.default_pair(found))
    assert (first.threads, second.threads) == (1, 1)
    assert first.name != second.name


def test_speedup_is_of_the_second_over_the_first():
    """Ratios are those of paired repeats; interval and median are of the ratios."""
    found = speedup.speedup([4.0, 6.0, 9.0], [2.0, 2.0, 3.0])
    assert found.ratios == (2.0, 3.0, 3.0)
    assert (found.median, found.interval) == (3.0, (2.0, 3.0))
    assert found.winner == 1


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
    """Who is faster in every one of at least three pairs wins; else nobody."""
    assert speedup.speedup(first, second).winner == winner


@given(SECONDS, SECONDS)
def test_exchanging_the_contenders_exchanges_the_winner(first, second):
    """The verdict does not depend on who is named first."""
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
    """Five pairs hold the median in 93.75 % of all cases."""
    assert speedup.speedup([1.0] * 5, [2.0] * 5).confidence == 0.9375


def test_no_pair_is_no_speedup():
    """Where one contender has no heat there is no ratio."""
    assert speedup.speedup([], [1.0]) is None


def test_the_verdict_names_winner_and_factor():
    """Both ways round, the factor is above 1 and of the winner."""
    said = verdict.verdict(a_race([1, 1, 1], [4, 4, 4]))
    assert "CPU, 1 thread wins: it is 4.00 times as fast as CPU, 2 threads" in said
    said = verdict.verdict(a_race([4, 4, 5], [1, 1, 1], (ONE, GPU)))
    assert "Testing card wins: it is 4.00 times" in said
    assert "4.00 to 5.00 over 3 pairs" in said


def test_fewer_threads_win_for_a_reason_that_fits_the_step():
    """A small step is not worth sharing; for a large one a core must be missing."""
    assert "takes only" in verdict.verdict(a_race([0.01] * 3, [0.02] * 3))
    assert "no free core" in verdict.verdict(a_race([1] * 3, [2] * 3))


def test_the_verdict_can_be_too_close_to_call():
    """An interval that holds 1 names no winner."""
    said = verdict.verdict(a_race([1, 1, 1], [0.5, 2, 1]))
    assert "Too close to call on this machine" in said
    assert "wins" not in said


def test_who_failed_does_not_lose_by_a_factor():
    """A contender that is out leaves no winner and no ratio in the sentence."""
    failed = (CandidateFailure(1, "The memory ran out."),)
    said = verdict.verdict(a_race([1, 1, 1], [], failures=failed))
    assert "no winner" in said
    assert "CPU, 2 threads" in said


def test_the_warm_up_counts_for_nothing():
    """Heat 0, here of 99 seconds, is in no figure."""
    race = a_race([1, 2, 3], [1, 1, 1])
    assert race.seconds(0, "training") == [1, 2, 3]
    assert race.seconds(0, "both") == pytest.approx([1.1, 2.2, 3.3])


def curves(*values):
    return tuple(
        tuple(LossPoint(step, 0.1 * step, each) for step, each in enumerate(line, 1))
        for line in values
    )


def test_curves_agree_or_the_reason_is_given():
    """Equal, equal but for rounding, or apart with the reason why."""
    same = a_race([1], [1], losses=curves([2.0, 1.0], [2.0, 1.0]))
    assert "bit for bit" in verdict.agreement(same)
    near = a_race([1], [1], losses=curves([2.0, 1.0], [2.0, 1.000001]))
    assert "agree within" in verdict.agreement(near)
    assert "rounding" in verdict.agreement(near)
    apart = curves([2.0, 1.0], [2.0, 1.5])
    drifted = a_race([1], [1], losses=apart)
    assert "33.3%" in verdict.agreement(drifted)
    masks = a_race([1], [1], (ONE, GPU), model="cnn", losses=apart)
    assert "dropout" in verdict.agreement(masks)


def test_the_line_of_equality_is_interpolated():
    """Between 0.5 at batch 16 and 2 at batch 64, both are equal at 32."""
    cells = [Cell(64, 16, (1.0,), (2.0,)), Cell(64, 64, (2.0,), (1.0,))]
    ((batch, width),) = results.equal_points(cells)
    assert (batch, width) == (pytest.approx(32), 64)


def test_the_line_is_found_along_the_width_too():
    """In a column it lies between two widths."""
    cells = [Cell(64, 16, (1.0,), (4.0,)), Cell(256, 16, (4.0,), (1.0,))]
    ((batch, width),) = results.equal_points(cells)
    assert (batch, width) == (16, pytest.approx(128))


def test_no_line_where_one_always_wins():
    """Cells of one winner have no point of equality between them."""
    assert not results.equal_points([Cell(64, b, (1.0,), (2.0,)) for b in (16, 32)])


def test_the_parts_of_a_typical_step_add_up():
    """Outliers in different steps and parts do not come between parts and whole."""
    fast, slow = (*(1.0,) * 7, 9.0), (9.0, *(1.0,) * 7)
    parts = dict.fromkeys(results.PARTS, (0.0,) * 8) | {"load": fast, "copy": slow}
    step = tuple(a + b for a, b in zip(fast, slow, strict=True))
    found = StepProfile("memory", parts, step, step, RunConfig(), {}, "2026")
    assert found.covered == pytest.approx(1)
    assert found.typical("step") == 2.0
