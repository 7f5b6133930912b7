from dataclasses import replace

import pytest

from core.results import LossPoint
from core.runs import comparison, seeds
from core.runs.comparison import APART, words
from core.store.tables import RunSummary
from core.ui.runs import Run, summary, top_epoch_loss, top_loss
from tests.app.runs.made_up import run
from tests.app.store.made_up import STARTED
from tests.figures import figures


@pytest.fixture(autouse=True)
def known(monkeypatch) -> list[RunSummary]:
    """The runs that tell what seeds change."""
    found: list[RunSummary] = []
    monkeypatch.setattr(seeds, "known", lambda _: found)
    return found


def finding(*runs: Run) -> str:
    return comparison.finding(runs, [f"run {run.id}" for run in runs])


@pytest.mark.parametrize(
    ("runs", "winner", "told"),
    [
        (
            [run("1", 2.0, 0.7, 0.86, 0.87), run("2", 1.0, 0.8, 0.86, batch_size=256)],
            "2",
            "2 2.0 85 2.0 1 4.0 2, 1 87.00 2 86.00",
        ),
        (
            [
                run("1", 1.0, 0.9, batch_size=256),
                run("2", 2.0, 0.8, 0.86),
                run("3", 3.0, 0.86),
            ],
            "1",  # of these 3; other runs of the slower settings took up to 4.0 s
            "1 3 1.0 85 3.0 3 3.0 4.0 1, 1 90.00 3 86.00",
        ),
        (  # the faster one needed fewer epochs
            [run("1", 1.0, 0.7, 0.8, 0.87), run("2", 1.0, 0.86, batch_size=256)],
            "2",
            "2 1.0 85 3.0 1 3.0 2 1 1 3, 1 87.00 2 86.00",
        ),
        (  # too close to call: epochs may differ by a factor of 1.25, rounded up
            [run("1", 1.0, 0.8, 0.9), run("2", 1.2, 0.8, 0.91, batch_size=32)],
            None,
            "90 1 2.0 2 2.4 2 1.3, 2 91.00 1 90.00",
        ),
        (  # run 3 shows that the settings of run 1 may take longer than run 2
            [run("1", 1.0, 0.9), run("2", 3.0, 0.91, epochs=1), run("3", 4.0, 0.9)],
            None,
            "90 1 1.0 4.0 2 3.0 1 2.0, 2 91.00 1 90.00",
        ),
        (  # neither can be faster by its settings
            [run("1", 1.0, 0.9), run("2", 1.4, 0.9), run("3", 3.0, 0.91, seed=1)],
            None,
            ", 3 91.00 1 90.00",
        ),
        (
            [run("1", 1.0, 0.3), run("2", 3.0, 0.91, batch_size=32)],
            "1",
            "1 1.0 3.0 2 3.0, 2 91.00 1 30.00",
        ),
        ([run("1", 1.0, 0.9)], None, "1 90.00 1.0,"),
        ([], None, ","),
    ],
)
def test_the_finding_names_the_fastest_and_what_each_run_reached(runs, winner, told):
    text, ahead = finding(*runs), comparison.lead(runs)
    times, qualities = (part.split() for part in told.split(","))
    assert figures(text) == times + qualities
    assert (APART in text) is (winner is not None)
    if ahead is None:
        assert (words("same") in text) is (len(runs) > 1)
    else:
        assert winner == (None if ahead[2].winner is None else ahead[0].id)


def test_a_run_that_has_not_finished_is_left_out():
    stopped = run("2", 1.0, 0.9)
    stopped = replace(stopped, job=replace(stopped.job, value=None))
    assert finding(run("1", 1.0, 0.9), stopped) == finding(run("1", 1.0, 0.9))
    assert finding(stopped) == ""


def test_nothing_is_said_of_the_time_of_a_simulated_run():
    simulated, here = run("1", 1.0, 0.9, device="sim"), run("2", 2.0, 0.86)
    assert figures(finding(simulated)) == ["1", "90.00"]
    assert finding(simulated).endswith(comparison.UNTIMED)
    assert finding(simulated, here) == finding(here)
    rows = comparison.differences([simulated, here])
    times = [row for row in rows if "econds" in row[0]]
    assert times
    assert all(row[1] == "–" for row in times)


def test_no_run_is_called_faster_by_less_than_its_own_epochs_differ_by():
    before, now = run("1", 2.0, 0.8, 0.86), run("2", 1.0, 0.8, 0.86, batch_size=256)
    assert comparison.lead([before, now])[2].winner is not None
    epoch, _ = now.history
    uneven = (1.0, 1.0, 3.0, 3.0, 3.0)
    now = replace(now, history=tuple(replace(epoch, seconds=s) for s in uneven))
    assert "3.0" in figures(finding(before, now))
    early = run("1", 4.0, *[0.86] * 5)
    late = run("2", 1.0, *[0.5] * 3, 0.86, 0.86, batch_size=256)
    assert figures(finding(early, late))[:4] == ["2", "5", "5.0", "20.0"]
    _, _, gain = comparison.lead([before, now])
    assert gain.winner is None


def had(run: Run, own: float, others: float) -> Run:
    """The run, while it had so many processors, and others this share of all."""
    shares = {"own_processors": own, "others_share": others}
    return replace(run, history=tuple(replace(e, **shares) for e in run.history))


@pytest.mark.parametrize(
    ("slower", "faster", "winner"),
    [
        ((0.3, 0.9), (1.6, 0.1), None),  # the machine may have decided
        ((0.05, 0.97), (0.2, 0.9), None),  # even if others had nearly all during both
        ((1.2, 0.3), (1.4, 0.3), "2"),  # others took as much from both
        ((0.8, 0.02), (1.9, 0.05), "2"),  # neither was disturbed
        ((1.6, 0.1), (0.3, 0.9), "2"),  # the faster one had less, and was faster still
    ],
)
def test_a_run_is_no_winner_if_it_only_had_more_of_the_machine(slower, faster, winner):
    before = had(run("1", 4.0, 0.8, 0.86), *slower)
    now = had(run("2", 1.0, 0.8, 0.86, batch_size=256), *faster)
    first, _, gain = comparison.lead([before, now])
    assert winner == (None if gain.winner is None else first.id)
    told = figures(finding(before, now))
    shares = [str(round(100 * share[1])) for share in (slower, faster)]
    assert (all(share in told for share in shares)) is (winner is None)


def test_of_a_lead_on_a_quieter_machine_only_the_rest_is_certain():
    before = had(run("1", 8.0, 0.8, 0.86), 0.8, 0.6)
    now = had(run("2", 1.0, 0.8, 0.86, batch_size=256), 1.6, 0.1)
    text = finding(before, now)
    assert "8.0×" not in text
    # Of 8, half is left, and times vary by a factor of 1.25 besides.
    assert "at least 3.2×" in text
    assert APART not in text
    # Only the epochs until both reached the accuracy count.
    late = before.history[-1]
    busy_later = replace(late, others_share=0.99, own_processors=0.01)
    longer = replace(before, history=(*before.history, busy_later))
    assert figures(finding(longer, now))[:5] == figures(text)[:5]


def test_a_run_that_diverged_is_called_so_and_compared_with_nothing():
    losses = tuple(LossPoint(n, float(n), loss) for n, loss in enumerate([2.3, 1e9]))
    good, diverged = run("1", 1.0, 0.9), replace(run("2", 0.5, 0.1), losses=losses)
    assert figures(diverged.diverged)[0] == "10.00"
    assert figures(finding(good, diverged)) == ["1", "90.00", "1.0", "2"]
    assert figures(finding(diverged)) == ["2"]
    assert comparison.fitting([good, diverged], "12", "same") == ()


@pytest.mark.parametrize(("images", "close"), [(1_000_000, False), (10_000, True)])
def test_what_chance_explains_is_too_close_to_call(images: int, close: bool):
    sentence = finding(
        run("a", 1.0, 0.884, images=images), run("b", 1.0, 0.879, images=images)
    )
    assert (f"{images:,}" in figures(sentence)) is close


def test_settings_are_better_only_if_they_are_with_several_seeds() -> None:
    runs = [
        run(f"{batch} {seed}", 1.0, accuracy + seed / 1000, batch_size=batch, seed=seed)
        for batch, accuracy in ((32, 0.9), (64, 0.88))
        for seed in range(seeds.LEAST)
    ]
    assert figures(finding(*runs))[-1] == "3"
    assert figures(finding(*runs[1:]))[-1] != "3"


def test_a_difference_is_held_against_what_seeds_changed(known):
    """With the settings of one of the runs if they tell it, or else with others."""
    first, second = run("1", 1.0, 0.88, batch_size=32), run("2", 1.0, 0.86)
    for size, points, is_close in ((256, "3.00", True), (32, "1.00", False)):
        step = float(points) / 200
        known += (
            summary(run("", 1.0, 0.8 + n * step, batch_size=size, seed=n))
            for n in range(seeds.LEAST)
        )
        qualities = finding(first, second).partition("Accuracy")[2]
        assert [points, str(seeds.LEAST), str(size)] == figures(qualities)[-4:-1]
        assert ("too close to call" in qualities) is is_close
    few = (replace(r.job.value, test_total=100) for r in (first, second))
    small = [
        replace(r, job=replace(r.job, value=v))
        for r, v in zip((first, second), few, strict=True)
    ]
    assert figures(finding(*small))[-4] == "1.00"  # whatever the test set's size


def test_the_table_has_the_settings_that_differ_and_the_figures():
    runs = [run("a", 2.0, 0.7, 0.86), run("b", 2.0, 0.86, batch_size=256, augment=True)]
    assert comparison.differences(runs) == [
        ("Batch size", "64", "256"),
        ("Flip images", "off", "on"),
        ("Test accuracy", "86.00%", "86.00%"),
        ("Seconds to 85%", "4.0", "2.0"),
        ("Total seconds", "4.0", "2.0"),
    ]
    assert comparison.level([replace(runs[0], history=()), runs[1]]) is None


@pytest.mark.parametrize(("worst", "top"), [(3.0, None), (1e16, 3.0)])
def test_a_loss_far_above_all_others_is_cut_off(worst, top):
    """The axis then ends a little above what nearly all steps stay below."""
    losses = [LossPoint(n, float(n), 2.3) for n in range(40)]
    good = replace(run("1", 1.0, 0.9), losses=tuple(losses))
    spiky = (*losses, LossPoint(40, 40.0, worst))
    assert top_loss([good, replace(run("2", 1.0, 0.9), losses=spiky)]) == top


def test_the_losses_before_a_run_has_learned_are_not_cut_off():
    falls = tuple(LossPoint(n, float(n), 2.3 if n < 2 else 0.4) for n in range(90))
    assert top_loss([replace(run("1", 1.0, 0.9), losses=falls)]) is None


@pytest.mark.parametrize(("worst", "top"), [(0.6, None), (1e16, 0.5)])
def test_the_axis_of_the_epochs_fits_the_losses_of_the_epochs(worst, top):
    good = run("1", 1.0, 0.9)
    history = [replace(good.history[0], train_loss=0.4, test_loss=0.4)] * 30
    history[9] = replace(history[9], test_loss=worst)
    assert top_epoch_loss([replace(good, history=tuple(history))]) == top


def test_a_run_that_waits_is_known_to_do_the_same_work():
    """Otherwise, its page would ask for a guess that its start takes back."""
    first = replace(run("1", 2.0, 0.7), started=STARTED)
    assert comparison.same_work(first, run("2", 2.0, seed=1))
    assert not comparison.same_work(first, run("3", 2.0, batch_size=256))
    other = replace(STARTED.environment, device_name="another")
    elsewhere = replace(STARTED, environment=other)
    assert not comparison.same_work(first, replace(first, started=elsewhere))
