from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.lessons.speed.climb_result import Progress, Result
from tests.app import samples
from tests.app.pages.walk import (
    component_data,
    finish,
    labs,
    open_page,
    open_tab,
    show_lab,
    status,
    texts,
    wait,
)


def test_every_lab_can_be_measured_without_a_guess():
    at = open_page("pages/8_Speed.py")
    for lab in labs("pages/8_Speed.py"):
        open_tab(at, lab.title)
        assert not at.button(key=lab.key).disabled


def test_a_loader_lab_that_is_cancelled_keeps_its_cells(engine):
    at = open_page("pages/8_Speed.py", tab="Loader lab")
    at.radio(key="loader_guess").set_value(0).run()
    at.selectbox(key="loader_budget").set_value(60).run()
    at.button(key="run_loader_lab").click().run()
    job = engine.jobs("core.lessons.speed.loader:measure")[-1]
    wait(engine, job.id, lambda job: len(job.events) >= 2)
    at.run()
    at.button(key="cancel_run_loader_lab").click().run()
    finish(at, engine, job.id)
    assert "Canceled. The measurements so far are still here" in status(at)
    assert "The fastest cell" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_the_loader_lab_weighs_the_usual_advice_and_names_what_is_missing():
    at = show_lab("loader", samples.LOADER, 0)
    text = texts(at.markdown)
    assert "“Always pin”: 1.00 times as fast as without" in text
    assert "“One worker per core”, 2 here: 51,200 samples/s at batch size 64" in text
    assert "with no workers. Without `persistent_workers=True`" in text
    assert "the fastest here" in text
    assert "**2 workers** are fastest here" in texts(at.info)
    assert "failed: no room" in texts(at.warning)
    assert "Time ran out after 10 seconds, so 3 of 12 cells" in texts(at.caption)


def test_a_guess_whose_readings_overlap_with_the_best_is_not_wrong():
    slow, fast = sorted(samples.LOADER.direct, key=lambda cell: cell.workers)
    near = replace(slow, seconds=(*slow.seconds[:2], fast.seconds[2] / 2))
    at = show_lab("loader", replace(samples.LOADER, direct=(near, fast)), 0)
    assert "whether this is really faster than no workers" in texts(at.success)
    assert "Your guess fits the measurements" in texts(at.success)


def test_a_loader_lab_without_time_asks_for_more():
    empty = replace(samples.LOADER, cells=(), direct=())
    reminder = texts(show_lab("loader", empty, 0).warning)
    assert "Time ran out before the first cell" in reminder


def test_the_memory_lab_compares_peaks_and_gradients():
    text = texts(show_lab("memory", samples.MEMORY, "Under a quarter").markdown)
    assert "it takes 1.00 times as long, with 50% of the peak memory. Only" in text
    assert "differ by at most 1.0e-08. The largest gradient is 0.1" in text


def test_what_fits_on_a_simulated_card_is_told_with_its_error_in_both_words():
    at = show_lab("memory", samples.MEMORY_ON_CPU, "Under a quarter")
    assert "2,048 fits. With checkpointing, a batch of 4,096 fits" in texts(at.markdown)
    raised = texts(at.code)
    assert "SIM out of memory" in raised
    assert "CUDA out of memory" in texts(at.markdown)
    assert "uses **33.6 MB** on top" in texts(at.markdown)


def test_where_memory_is_not_counted_time_is_shown():
    costs = tuple(replace(c, peak_bytes=None) for c in samples.MEMORY.costs)
    at = show_lab("memory", replace(samples.MEMORY, costs=costs), "Under a quarter")
    assert not at.get("vega_lite_chart")
    assert "can't report peak memory" in texts(at.info)
    assert "it takes 1.00 times as long" in texts(at.markdown)


def test_a_target_is_reached_or_missed():
    at = show_lab("time_to_accuracy", samples.ACCURACIES, "Under 15 s")
    assert "92.5% after **14.5 s**" in texts(at.success)
    assert list(at.dataframe[0].value["Until 92.5%"]) == [
        *["not reached"] * 5,
        "14.5 s",
    ]
    early = [t for t in samples.ACCURACIES.tests if t.epoch == 1]
    missed = replace(samples.ACCURACIES, tests=tuple(early))
    at = show_lab("time_to_accuracy", missed, "Under 15 s")
    assert "reaches **90.50%**, not 92.5%" in texts(at.info)


def test_vectorize_and_copies_say_by_how_much():
    text = texts(show_lab("vectorize", samples.VECTORIZED, "NumPy").markdown)
    assert "1 point: **the Python loop** is 40 times as fast as torch on CUDA" in text
    assert "100,000 points: **torch on CUDA** is 2,000 times as fast as the Py" in text
    at = show_lab("copies", samples.COPIES, "Less than twice as long")
    text = texts(at.markdown)
    assert "`.item()` in every step takes **0.10 times** as long" in text
    assert "nothing to do until the host gives it more work" in text
    assert "simulated" not in text
    assert len(at.get("vega_lite_chart")) == 2


def test_who_waits_is_told_of_the_simulated_accelerator():
    at = show_lab("copies", samples.COPIES_ON_CPU, "Less than twice as long")
    text = texts(at.markdown)
    assert "With pinned, the host waits for 0 of 100 copies" in text
    assert len(at.get("vega_lite_chart")) == 3


# The ladder


def climb(status: str, rungs: int, *last: object, value=None, **state) -> AppTest:
    """The Speed page's climb, with its first rungs measured."""

    def draw(status, rungs, last, value):
        from dataclasses import replace

        from core.jobs.job import Job
        from core.lessons.speed import ladder_page
        from tests.app.samples import CLIMBED

        results = CLIMBED.results[:rungs]
        job = Job("id", "path", (CLIMBED.climb, results[:1]), "train", status=status)
        events = (CLIMBED.limit, *results[1:], *last)
        value = value or (CLIMBED if status == "finished" else None)
        ladder_page.draw_climb(replace(job, events=events, value=value), "CPU")

    arguments = (status, rungs, last, value)
    at = AppTest.from_function(draw, default_timeout=60, args=arguments)
    for name, entry in state.items():
        at.session_state[name] = entry
    at.run()
    assert not at.exception
    return at


def guesses(at: AppTest) -> list[str]:
    """The rungs that ask for a guess."""
    return [control.key.removeprefix("guess_") for control in at.segmented_control]


def drawings(at: AppTest) -> int:
    return sum("svg" in data for data in component_data(at))


def test_a_rung_shows_its_figures_once_the_learner_has_guessed():
    at = climb("running", 3, ladder_rung="two_workers")
    assert "0.50× as fast" not in texts(at.info)
    assert "row, guess" in texts(at.markdown)
    assert list(at.dataframe[0].value["Rung"]) == ["The textbook loop"]
    bars = drawings(at)
    at.segmented_control(key="guess_two_workers").set_value("Slower").run()
    assert not at.exception
    assert drawings(at) == bars + 1
    assert "two_workers" not in guesses(at)
    assert "ran 2.0 times as fast as “Two loader workers”" in texts(at.success)
    assert "You guessed right" in texts(at.success)
    assert len(at.dataframe[0].value) == 2
    assert "dropped" in texts(at.markdown)
    wrong = {"guess_two_workers": "More than that"}
    at = climb("running", 3, ladder_rung="two_workers", answers=wrong)
    assert "You guessed: over 2×." in texts(at.info)


def test_what_the_host_waits_for_is_told_while_the_climb_goes_on():
    counts = samples.CLIMBED_ON_CPU.counts
    text = texts(climb("running", 1, *counts).markdown)
    assert "The textbook loop: for 1,024 images, the host waits 48 times" in text
    assert "No .item() in the loop: never" in text


def test_one_switch_shows_all_results_and_only_then_there_are_files():
    at = climb("finished", 14)
    assert "results are waiting for your guess" in texts(at.info)
    assert not at.download_button
    at.toggle(key="ladder_show_all").set_value(True).run()
    assert [button.key for button in at.download_button] == [
        "ladder_csv",
        "ladder_json",
    ]
    assert "Best rung: " in texts(at.success)
    assert "13 times as fast as the textbook loop** (13 to 14" in texts(at.success)
    assert "Guess what each change did" not in texts(at.markdown)
    text = texts(at.success)
    assert "do the arithmetic in float32" in text  # no other was measured
    assert len(at.dataframe[0].value) == drawings(at) == 8
    assert "Decode once saves the most: 3.00 s of the 4.00 s" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_without_the_textbook_the_others_have_their_figures():
    results = samples.CLIMBED.results
    failed = [Result(r.rung, "", message="It broke.") for r in results[:4]]
    alone = replace(results[4], base="", base_seconds=())
    direct = replace(samples.CLIMBED.direct, textbook_seconds=())
    climbed = (*failed, alone, *results[5:])
    value = replace(samples.CLIMBED, results=climbed, direct=direct)
    state = {"ladder_show_all": True, "ladder_rung": "decoded_once"}
    at = climb("finished", 14, value=value, **state)
    assert {"Epoch", "Test accuracy"} <= {metric.label for metric in at.metric}
    assert "Best rung: " in texts(at.success)
    assert "textbook" not in texts(at.success)
    assert "times as fast" not in texts(at.info)


@pytest.mark.parametrize(
    ("rung", "text"),
    [
        ("pinned", "On a CPU, the batches are already where"),
        ("graphed", "NVIDIA and AMD"),
        ("textbook", "opens every image"),
        ("compiled", "no compiler"),  # it failed
    ],
)
def test_a_rung_that_is_not_measured_says_why_and_asks_for_no_guess(rung, text):
    at = climb("finished", 14, ladder_rung=rung)
    assert text in texts([*at.info, *at.markdown, *at.error])
    assert rung not in guesses(at)


def test_a_cancelled_climb_keeps_its_rungs():
    at = climb("cancelled", 3, ladder_show_all=True)
    assert "canceled after 3 of 14 rungs" in status(at)
    assert "you won't get that comparison" in texts(at.markdown)
    assert len(at.dataframe[0].value) == 3


def test_the_direct_comparison_does_not_tell_which_rung_is_best():
    at = climb("running", 14, Progress("", 2, 17))
    assert status(at).endswith("best rung: pair 2 of 3, step 17")
    assert "16-bit autocast" not in status(at)
    assert not at.success


def test_a_climb_is_started_cancelled_and_resumed(engine):
    path = "core.lessons.speed.climb:climb"
    at = open_page("pages/8_Speed.py")
    at.selectbox(key="ladder_task").set_value("sprites").run()
    at.number_input(key="ladder_epochs_ann").set_value(1).run()
    at.button(key="run_ladder").click().run()
    assert not at.exception
    (job,) = engine.jobs(path)
    wait(engine, job.id, lambda job: any(isinstance(e, Result) for e in job.events))
    at.run()
    at.button(key="cancel_ladder").click().run()
    finish(at, engine, job.id)
    assert "you can resume" in status(at)
    assert at.button(key="run_ladder").label == "Resume the climb"
    at.selectbox(key="ladder_model").set_value("cnn").run()
    assert at.button(key="run_ladder").label == "Climb the ladder"
    at.selectbox(key="ladder_model").set_value("ann").run()
    at.button(key="run_ladder").click().run()
    _, again = engine.jobs(path)
    assert again.arguments[1][0].rung == "textbook"
    engine.cancel(again.id)
    wait(engine, again.id)


def test_an_impossible_climb_is_not_started():
    at = open_page("pages/8_Speed.py")
    at.number_input(key="ladder_epochs_ann").set_value(0).run()
    assert "Epochs must be from 1 to 10, not 0." in texts(at.warning)
    assert at.button(key="run_ladder").disabled
