"""The Speed page: the ladder and the labs."""

import time

import pytest
from streamlit.testing.v1 import AppTest

from core.speed.headline import DirectProgress
from core.speed.ladder import Result
from core.ui.speed import copies, loader, memory, vectorize
from tests.pages.walk import finish, open_page, open_tab, press, status, texts, wait


def test_nobody_has_to_guess():
    """A lab can be measured without."""
    at = open_page("pages/6_Speed.py")
    for lab in (loader, memory, vectorize, copies):
        open_tab(at, lab.LAB.title)
        assert not at.button(key=lab.LAB.panel.key).disabled


def test_small_copies_are_measured_and_judged(engine):
    """The guess is held against what was found; both charts and files are there."""
    at = open_page("pages/6_Speed.py", tab=copies.LAB.title)
    at.radio(key="copies_guess").set_value("About as long").run()
    at = press(at, engine, "run_copies_lab", "core.speed.copies:measure")
    assert "10,000 pieces take" in texts(at.info) + texts(at.success)
    assert "`.item()` in every step takes" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 2
    keys = {button.key for button in at.download_button}
    assert {"small_copies_csv", "small_copies_json"} <= keys


def test_a_loader_lab_that_is_cancelled_keeps_its_cells(engine):
    """It ends within seconds, and what was measured is drawn and named."""
    at = open_page("pages/6_Speed.py", tab=loader.LAB.title)
    at.radio(key="loader_guess").set_value(0).run()
    at.selectbox(key="loader_budget").set_value(60).run()
    at.button(key="run_loader_lab").click().run()
    job = engine.jobs("core.speed.loader:measure")[-1]
    wait(engine, job.id, lambda job: len(job.events) >= 3)  # picked up, and two cells
    at.run()
    at.button(key="cancel_run_loader_lab").click().run()
    asked = time.monotonic()
    wait(engine, job.id)
    assert time.monotonic() - asked < 10
    finish(at, engine, job.id)
    assert "Cancelled. What was measured until then stays" in status(at)
    assert "The fastest cell" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


def test_the_labs_say_what_they_found_on_an_accelerator():
    """Charts, sentences and failures of results as a GPU machine brings them."""

    def draw():
        from core.jobs.job import Job
        from core.ui.speed import copies, loader, memory, vectorize
        from tests import samples

        def job(name, value, *arguments):
            return Job(name, "path", arguments, "train", status="finished", value=value)

        done = job("loader", samples.LOADER, "sprites", "cuda", samples.LOADER.plan)
        loader.result(done, 0, cores=2)
        memory.result(job("memory", samples.MEMORY), "Under a quarter")
        vectorize.result(job("vectorize", samples.VECTORIZED), "NumPy")
        copies.result(job("copies", samples.COPIES), "About as long")

    at = AppTest.from_function(draw, default_timeout=60).run()
    assert not at.exception
    assert len(at.get("vega_lite_chart")) == 5
    said = texts(at.markdown)
    for sentence in (
        "“Always pin”: 1.00 times as fast as without",
        "“One worker per core”, 2 here: 51,200 samples/s at batch size 64, which noth",
        "**Checkpointed**: 50% of the peak memory, 1.00 times the time",
        "differ by at most 1.0e-08, where the greatest is 0.1",
        "1 point: **Python loop** is 40 times as fast as torch on CUDA",
        "100,000 points: **torch on CUDA** is 2,000 times as fast as Python loop",
        "`.item()` in every step takes **0.10 times** as long",
        "then the device idles until the host gives it more",
    ):
        assert sentence in said
    assert "failed: no room" in texts(at.warning)
    assert "The 10 seconds ran out: 3 of 12 cells" in texts(at.caption)
    assert "**2 workers** are fastest here" in texts(at.info)


def test_where_memory_is_not_counted_time_is_shown():
    """No point is drawn at 0 MB; the page says why, and gives the seconds."""

    def draw():
        from dataclasses import replace

        from core.jobs.job import Job
        from core.ui.speed import memory
        from tests.samples import MEMORY

        costs = tuple(replace(cost, peak_bytes=None) for cost in MEMORY.costs)
        value = replace(MEMORY, costs=costs)
        job = Job("id", "path", (), "train", "", "finished", value=value)
        memory.result(job, "Under a quarter")

    at = AppTest.from_function(draw, default_timeout=60).run()
    assert not at.exception
    assert not at.get("vega_lite_chart")
    assert "does not count peak memory" in texts(at.info)
    assert "**Checkpointed**: 1.00 times the time" in texts(at.markdown)


def drawn_climb(status: str, rungs: int, *last: object, **state) -> AppTest:
    """The Speed page's climb, with its first rungs measured."""

    def draw(status, rungs, last):
        from dataclasses import replace

        from core.jobs.job import Job
        from core.speed.headline import Climbed
        from core.speed.ladder import Climb
        from core.ui.speed import ladder
        from tests.samples import CLIMBED

        wanted = Climb("sprites", "ann", "cpu", 3, 60_000)
        found = CLIMBED.results[:rungs]
        done = CLIMBED if status == "finished" else None
        assert done is None or isinstance(done, Climbed)
        job = Job("id", "path", (wanted, found[:1]), status=status, lane="train")
        events = (CLIMBED.limit, *found[1:], *last)
        ladder.climb(replace(job, events=events, value=done), "CPU")

    shown = {"status": status, "rungs": rungs, "last": last}
    at = AppTest.from_function(draw, default_timeout=60, kwargs=shown)
    for name, value in state.items():
        at.session_state[name] = value
    at.run()
    assert not at.exception
    return at


def guesses(at: AppTest) -> list[str]:
    """The rungs that ask for a guess."""
    return [each.key.removeprefix("guess_") for each in at.segmented_control]


def test_a_rung_shows_its_figures_once_the_learner_has_guessed():
    """Until then nothing tells; the guess brings bar and verdict, and is kept."""
    at = drawn_climb("running", 3, ladder_rung="two_workers")
    assert "0.50× as fast" not in texts(at.info)
    assert "Guess in its row" in texts(at.markdown)
    assert list(at.dataframe[0].value["Rung"]) == ["The textbook loop"]
    bars = len(at.image)
    at.segmented_control(key="guess_two_workers").set_value("Slower").run()
    assert not at.exception
    assert len(at.image) == bars + 1
    assert "two_workers" not in guesses(at)
    assert "0.50× as fast" in texts(at.success)
    assert "You guessed right" in texts(at.success)
    assert len(at.dataframe[0].value) == 2
    assert "dropped" in texts(at.markdown)
    wrong = {"guess_two_workers": "More than that"}
    at = drawn_climb("running", 3, ladder_rung="two_workers", answers=wrong)
    assert "You guessed: more than that." in texts(at.info)


def test_no_file_tells_what_is_to_be_guessed():
    """CSV and JSON are there once nothing is hidden any more."""
    at = drawn_climb("finished", 14)
    assert not at.download_button
    at.toggle(key="ladder_show_all").set_value(True).run()
    keys = {button.key for button in at.download_button}
    assert keys == {"ladder_csv", "ladder_json"}


def test_without_the_textbook_the_others_have_their_figures():
    """A rung that nothing can be compared with shows what it took, and no verdict."""

    def draw():
        from dataclasses import replace

        from core.jobs.job import Job
        from core.speed.ladder import Climb, Result
        from core.ui.speed import ladder
        from tests.samples import CLIMBED

        wanted = Climb("sprites", "ann", "cpu", 3, 60_000)
        failed = [Result(r.rung, "", message="It broke.") for r in CLIMBED.results[:4]]
        alone = replace(CLIMBED.results[4], base="", base_seconds=())
        results = (*failed, alone, *CLIMBED.results[5:])
        direct = replace(CLIMBED.direct, textbook_seconds=())
        done = replace(CLIMBED, results=results, direct=direct)
        job = Job("id", "path", (wanted, ()), status="finished", lane="train")
        ladder.climb(replace(job, value=done), "CPU")

    at = AppTest.from_function(draw, default_timeout=60)
    at.session_state["ladder_show_all"] = True
    at.session_state["ladder_rung"] = "decoded_once"
    at.run()
    assert not at.exception
    assert {"Epoch", "Test accuracy"} <= {metric.label for metric in at.metric}
    assert "Best rung: " in texts(at.success)
    assert "textbook" not in texts(at.success)
    assert "times as fast" not in texts(at.info)


def test_all_results_show_for_whoever_does_not_want_to_guess():
    """One switch; the best rung is named, with its distance to the limit."""
    at = drawn_climb("finished", 14)
    assert "results are waiting for your guess" in texts(at.info)
    at.toggle(key="ladder_show_all").set_value(True).run()
    assert "Best rung: " in texts(at.success)
    assert "13 times as fast as the textbook loop** (13 to 14" in texts(at.success)
    assert "measured limit for float32" in texts(at.success)  # no other was measured
    measured = 8
    assert len(at.dataframe[0].value) == measured
    assert len(at.image) == measured
    assert "Decode once saves the most: 3.00 s of the 4.00 s" in texts(at.markdown)
    assert len(at.get("vega_lite_chart")) == 1


@pytest.mark.parametrize(
    ("rung", "said"),
    [
        ("pinned", "there is none"),
        ("graphed", "NVIDIA or AMD"),
        ("textbook", "opens every image"),
    ],
)
def test_a_rung_that_does_not_apply_says_why(rung, said):
    """And asks for no guess."""
    at = drawn_climb("finished", 14, ladder_rung=rung)
    assert said in texts(at.info) + texts(at.markdown)
    assert rung not in guesses(at)


def test_a_rung_that_failed_is_a_sentence():
    """With the reason, and without a guess that could be wrong."""
    at = drawn_climb("finished", 14, ladder_rung="compiled")
    assert "no compiler" in texts(at.error)


def test_a_cancelled_climb_keeps_its_rungs():
    """What was measured stays on the page."""
    at = drawn_climb("cancelled", 3, ladder_show_all=True)
    assert "Cancelled after 3 of 14 rungs" in status(at)
    assert "a climb that ended early has no such figure" in texts(at.markdown)
    assert len(at.dataframe[0].value) == 3


def test_the_direct_comparison_does_not_tell_which_rung_is_best():
    """While it is measured it may yet be guessed; how far it has come is told."""
    at = drawn_climb("running", 14, DirectProgress(2, 3, 17))
    (bar,) = at.get("progress")
    said = bar.proto.text
    assert said.endswith("best rung, in turn: pair 2 of 3, step 17")
    assert "16-bit autocast" not in said
    assert not at.success


def test_a_climb_is_started_cancelled_and_resumed(engine):
    """Resuming hands over what was measured; another model begins anew."""
    path = "core.speed.climb:climb"
    at = open_page("pages/6_Speed.py")
    at.selectbox(key="ladder_task").set_value("sprites").run()
    at.number_input(key="ladder_epochs_ann").set_value(1).run()
    at.button(key="run_ladder").click().run()
    assert not at.exception
    (job,) = engine.jobs(path)
    wait(engine, job.id, lambda job: any(isinstance(e, Result) for e in job.events))
    at.run()
    at.button(key="cancel_ladder").click().run()
    finish(at, engine, job.id)
    assert "can be resumed" in status(at)
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
    """A sentence says what is wrong, and the button waits."""
    at = open_page("pages/6_Speed.py")
    at.number_input(key="ladder_epochs_ann").set_value(0).run()
    assert "Epochs must be from 1 to 10, not 0." in texts(at.warning)
    assert at.button(key="run_ladder").disabled
