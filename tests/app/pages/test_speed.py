from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core.lessons.speed.climb_result import BY_NAME, ClimbProgress, Result
from core.ui import guess
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
    assert engine.job(job.id).status == "cancelled"
    assert len(at.get("vega_lite_chart")) == 1


def test_the_loader_lab_weighs_the_usual_advice_and_names_what_is_missing():
    at = show_lab("loader", samples.LOADER, 0)
    assert "1.00 times" in texts(at.markdown)  # with pinned memory
    assert "51,200 samples/s" in texts(at.markdown)  # with a worker per core
    assert "2 workers" in texts(at.info)
    assert "no room" in texts(at.warning)
    assert "3 of 12" in texts(at.caption)


def test_a_guess_whose_readings_overlap_with_the_best_is_left_open():
    slow, fast = sorted(samples.LOADER.direct, key=lambda cell: cell.workers)
    near = replace(slow, seconds=(*slow.seconds[:2], fast.seconds[2] / 2))
    at = show_lab("loader", replace(samples.LOADER, direct=(near, fast)), 0)
    assert not at.success
    assert guess.OPEN in texts(at.info)


def test_a_loader_lab_without_time_asks_for_more():
    empty = replace(samples.LOADER, cells=(), direct=())
    at = show_lab("loader", empty, 0)
    assert len(at.warning) == 1
    assert not at.get("vega_lite_chart")


def test_the_memory_lab_compares_peaks_and_gradients():
    text = texts(show_lab("memory", samples.MEMORY, "Under a quarter").markdown)
    for figure in ("1.00 times", "50%", "1.0e-08"):
        assert figure in text


def test_a_simulated_card_shows_what_fits_and_its_error_in_both_wordings():
    at = show_lab("memory", samples.MEMORY_ON_CPU, "Under a quarter")
    for figure in ("2,048", "4,096", "33.6 MB"):
        assert figure in texts(at.markdown)
    assert "SIM out of memory" in texts(at.code)
    assert "CUDA out of memory" in texts(at.markdown)


def test_where_memory_is_not_counted_time_is_shown():
    costs = tuple(replace(c, peak_bytes=None) for c in samples.MEMORY.costs)
    at = show_lab("memory", replace(samples.MEMORY, costs=costs), "Under a quarter")
    assert not at.get("vega_lite_chart")
    assert at.info
    assert "1.00 times" in texts(at.markdown)


def test_a_target_is_reached_or_missed():
    at = show_lab("time_to_accuracy", samples.ACCURACIES, "Under 15 s")
    assert "14.5 s" in texts(at.success)
    assert list(at.dataframe[0].value["Until 92.5%"]) == [
        *["not reached"] * 5,
        "14.5 s",
    ]
    early = [t for t in samples.ACCURACIES.tests if t.epoch == 1]
    missed = replace(samples.ACCURACIES, tests=tuple(early))
    at = show_lab("time_to_accuracy", missed, "Under 15 s")
    assert "90.50%" in texts(at.info)
    assert not at.success


def test_vectorize_and_copies_say_by_how_much():
    text = texts(show_lab("vectorize", samples.VECTORIZED, "NumPy").markdown)
    assert "40 times" in text
    assert "2,000 times" in text
    at = show_lab("copies", samples.COPIES, "Less than twice as long")
    assert "0.10 times" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 2


def test_copies_on_the_simulated_accelerator_count_the_hosts_waits():
    at = show_lab("copies", samples.COPIES_ON_CPU, "Less than twice as long")
    assert "0 of 100" in texts(at.markdown)
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
    assert not at.info
    assert not at.success
    assert list(at.dataframe[0].value["Rung"]) == [BY_NAME["textbook"].title]
    dots = drawings(at)
    at.segmented_control(key="guess_two_workers").set_value("Slower").run()
    assert not at.exception
    assert drawings(at) == dots + 1
    assert "two_workers" not in guesses(at)
    assert "2.0 times" in texts(at.success)
    assert list(at.dataframe[0].value["Kept"]) == [True, False]
    wrong = {"guess_two_workers": "More than that"}
    at = climb("running", 3, ladder_rung="two_workers", answers=wrong)
    assert "2.0 times" in texts(at.info)
    assert not at.success


def test_a_climb_shows_the_hosts_waits_while_it_runs():
    counts = samples.CLIMBED_ON_CPU.counts
    tables = [table.value for table in climb("running", 1, *counts).dataframe]
    (waits,) = (table for table in tables if "Host waits" in table)
    assert list(waits["Host waits"]) == [48, 0]


def test_one_switch_shows_all_results_and_only_then_there_are_files():
    at = climb("finished", 14)
    assert at.info
    assert not at.success
    assert not at.download_button
    at.toggle(key="ladder_show_all").set_value(True).run()
    assert [button.key for button in at.download_button] == [
        "ladder_csv",
        "ladder_json",
    ]
    (verdict,) = (element.value for element in at.success)
    for found in ("13 times", "13 to 14", "float32"):  # no other type was measured
        assert found in verdict
    assert len(at.dataframe[0].value) == drawings(at) - 1 == 8  # and the axis
    assert "3.00 s of the 4.00 s" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 2  # what each rung saves, and the roofline


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
    assert len(at.success) == 1
    speedups = at.dataframe[0].value.set_index("Rung")["Speedup"]
    assert speedups.isna()[BY_NAME["decoded_once"].title]
    assert speedups.notna()[BY_NAME["fused"].title]


@pytest.mark.parametrize(
    ("rung", "text"),
    [
        ("pinned", BY_NAME["pinned"].obstacle("CPU", "ann")),
        ("graphed", BY_NAME["graphed"].obstacle("CPU", "ann")),
        ("textbook", BY_NAME["textbook"].change),
        ("compiled", "There is no compiler."),  # it failed
    ],
)
def test_a_rung_that_is_not_measured_says_why_and_asks_for_no_guess(rung, text):
    at = climb("finished", 14, ladder_rung=rung)
    assert text
    assert text in texts([*at.info, *at.markdown, *at.error])
    assert rung not in guesses(at)


def test_a_cancelled_climb_keeps_its_rungs():
    at = climb("cancelled", 3, ladder_show_all=True)
    assert "3 of 14" in status(at)
    assert not at.success
    assert len(at.dataframe[0].value) == 3


def test_the_direct_comparison_does_not_give_away_the_best_rung():
    at = climb("running", 14, ClimbProgress("", 2, 17))
    assert "2 of 3" in status(at)
    assert BY_NAME[samples.CLIMBED.direct.rung].title not in status(at)
    assert not at.success


@pytest.mark.slow
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
    for model, resumes in (("ann", True), ("cnn", False), ("ann", True)):
        at.selectbox(key="ladder_model").set_value(model).run()
        assert ("restart_ladder" in {button.key for button in at.button}) == resumes
    at.button(key="run_ladder").click().run()
    _, again = engine.jobs(path)
    assert again.arguments[1][0].rung == "textbook"
    engine.cancel(again.id)
    wait(engine, again.id)


def test_an_impossible_climb_is_not_started():
    at = open_page("pages/8_Speed.py")
    at.number_input(key="ladder_epochs_ann").set_value(0).run()
    assert len(at.warning) == 1
    assert at.button(key="run_ladder").disabled
