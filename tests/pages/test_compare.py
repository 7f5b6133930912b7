"""The Compare page: race, timing lab, one step taken apart, the map."""

import pytest
from streamlit.testing.v1 import AppTest

from core.compare.candidates import candidates
from core.compare.results import Cell
from core.jobs.roster import Host
from core.measure import records
from tests.pages.walk import finish, open_page, open_tab, press, status, texts, wait

TABS = ("The race", "The stopwatch", "The profile", "The map")


def test_a_race_ends_with_a_verdict_and_files(engine):
    """Bars, speed-ups, curves, why they agree, and both files to download."""
    at = open_page("pages/5_Compare.py")
    # The machine that tests run on is busy: one thread against itself.
    for name in ("first_contender", "second_contender"):
        box = at.selectbox(key=name)
        box.set_value(next(o for o in compared() if o.threads == 1))
    at.selectbox(key="race_task").set_value("sprites")
    at.number_input(key="race_steps_ann").set_value(20)
    at.number_input(key="race_repeats").set_value(3).run()
    at = press(at, engine, "compare", "core.compare.race:race")
    assert "hidden until you guess" in texts(at.tabs[0].info)
    assert "wins" not in texts(at.info)
    at.radio(key="race_guess").set_value("About equally fast").run()
    said = texts(at.info) + texts(at.success)
    assert "You guessed" in said
    assert "wins" in said or "Too close to call" in said
    assert "bit for bit" in texts(at.markdown)
    tab = at.tabs[0]
    assert len(tab.get("vega_lite_chart")) == 3
    assert "n = 3" in texts(at.caption)
    labels = [button.proto.label for button in tab.get("download_button")]
    assert labels == ["CSV", "JSON"]


def compared():
    """The candidates on the page."""
    from core.ui.server import engine

    return candidates(engine().machine())


def test_a_race_names_its_machine_where_there_are_several(engine, monkeypatch):
    """Each contender is on any, and the race waits for both."""
    here = engine.machine()
    found = [Host("one", "a", 1, True, here), Host("two", "b", 1, True, here)]
    monkeypatch.setattr(engine, "hosts", lambda: found)
    at = open_page("pages/5_Compare.py")
    first, second = (at.selectbox(key=f"{n}_contender_on") for n in ("first", "second"))
    assert [each.value.host for each in (first, second)] == ["one", "one"]
    second.select_index(second.options.index("CPU (1 thread) on two")).run()
    names = at.radio(key="race_guess").options[:2]
    assert [name.split(" on ")[1] for name in names] == ["one", "two"]
    at.button(key="compare").click().run()
    (job,) = (each for each in engine.going_on() if each.address.endswith("race:race"))
    assert job.hosts == ["one", "two"]
    assert "`one` has no worker" in status(at)
    engine.cancel(job.id)


def test_an_impossible_race_is_not_started():
    """A number out of range is answered with a sentence; the button is off."""
    at = open_page("pages/5_Compare.py")
    at.number_input(key="race_repeats").set_value(1).run()
    assert "Repeats must be from 3 to 30" in texts(at.warning)
    assert at.button(key="compare").disabled
    at.number_input(key="race_repeats").set_value(3).run()
    assert not at.button(key="compare").disabled


def test_the_learner_guesses_before_the_readings_show(engine):
    """Then readings, and what the guess was worth."""
    at = open_page("pages/5_Compare.py", tab="The stopwatch")
    at.radio(key="timing_guess").set_value("About as long").run()
    at = press(at, engine, "time_it", "core.compare.timing_pitfalls:measure")
    said = texts(at.info) + texts(at.success)
    assert "The first call took" in said
    assert len(at.tabs[1].get("vega_lite_chart")) == 1
    assert not [row for row in at.tabs[1].markdown if "Example" in row.value]


def test_a_step_is_taken_apart_and_the_map_measured(engine):
    """The bottleneck is named, the trace can be taken; a map says who wins where."""
    at = open_page("pages/5_Compare.py", tab="The profile")
    at.radio(key="profile_guess").set_value("load").run()
    at = press(at, engine, "take_apart", "core.compare.step_profile:measure")
    assert "**load**" in texts(at.markdown)
    labels = [button.proto.label for button in at.get("download_button")]
    assert "Trace for Perfetto" in labels
    open_tab(at, "The map")
    alone = next(each for each in compared() if each.threads == 1)
    at.selectbox(key="second_contender").set_value(alone)
    at.selectbox(key="budget").set_value(60).run()
    at.radio(key="map_guess").set_value("About equally fast").run()
    at.button(key="measure_map").click().run()
    job = engine.jobs("core.compare.crossover:measure")[-1]
    wait(engine, job.id, lambda job: any(isinstance(e, Cell) for e in job.events))
    at.run()
    at.button(key="cancel_measure_map").click().run()
    finish(at, engine, job.id)
    open_tab(at, "The race")
    assert at.selectbox(key="second_contender").value == alone  # one choice for both
    assert at.button(key="compare")
    open_tab(at, "The map")
    assert at.selectbox(key="budget").value == 60
    assert len(at.tabs[3].get("vega_lite_chart")) == 1
    assert "Cancelled. What was measured until then stays" in status(at)
    assert "too close to call" in texts(at.markdown)


def test_recorded_comparisons_are_shown_as_recorded(monkeypatch, tmp_path):
    """Each section shows them with device and date; a damaged one gives a notice."""
    from dataclasses import asdict

    from tests.samples import CARD, CROSSOVER, PROFILE, RACE, TIMING

    whole = {
        "date": "2026-11-20T10:00:00+00:00",
        "environment": asdict(CARD),
        "races": [asdict(RACE.without_losses())],
        "crossovers": [asdict(CROSSOVER)],
        "labs": [asdict(TIMING)],
        "breakdowns": [asdict(PROFILE)],
    }
    records.write(whole, tmp_path)
    (tmp_path / "old.json").write_text('{"format": 0}')
    found = records.records(tmp_path)
    monkeypatch.setattr(records, "records", lambda: found)
    at, said = open_page("pages/5_Compare.py"), ""
    assert "old.json is left out" in texts(at.warning)
    for name, recorded in zip(TABS, (1, 1, 0, 1), strict=True):
        open_tab(at, name)
        labels = [each.label for each in at.expander]
        labels = [label for label in labels if label.startswith("Recorded: ")]
        assert len(labels) == recorded, name
        assert all("Testing card, recorded 2026-11-20" in label for label in labels)
        said += texts(at.markdown)
    assert "Testing card wins" in said


def test_a_worker_that_dies_mid_race_leaves_its_trials():
    """The page says why it ended, and keeps the bars of what was measured."""

    def draw():
        from core.compare.results import RaceStarted
        from core.jobs.job import Job
        from core.ui import job_panel
        from core.ui.compare import race
        from tests.samples import RACE

        started = RaceStarted(RACE.candidates, RACE.config, RACE.steps, 3)
        events = (started, *RACE.trials[:5])
        lost = "The worker process ended while it was working."
        job = Job("id", "path", (), "train", "", "failed", 0, events, None, lost)
        job_panel.ended_badly(job, race.PANEL.failed)
        race.result(job, "About equally fast")

    at = AppTest.from_function(draw, default_timeout=60).run()
    assert not at.exception
    assert "The worker process ended" in texts(at.error)
    assert len(at.get("vega_lite_chart")) == 3
    assert not at.info  # no verdict on half a race


def test_a_way_that_misleads_is_marked_and_the_right_one_never_is():
    """However the machine hiccups: the last way is what the others are held against."""
    from core.compare.results import WAYS, Reading
    from core.ui.compare.timing_pitfalls import wrong

    naive, synchronized, right = WAYS
    found = (
        Reading(naive, (50.0, 0.1, 0.1)),
        Reading(synchronized, (3.1, 3.0, 3.0)),
        Reading(right, (3.0, 3.0, 90.0)),
    )
    assert wrong(found) == {naive: True, synchronized: False, right: False}


def test_the_map_guesses_its_blanks_and_hatches_its_ties():
    """A blank has the value of the nearest cell that is measured."""
    from core.ui.compare import crossover

    cells = (
        Cell(32, 16, (1.0,) * 6, (2.0,) * 6),
        Cell(4096, 4096, (2.0,) * 6, (1.0,) * 6),
        Cell(32, 4096, (1.0, 2.0) * 3, (2.0, 1.0) * 3),
    )
    rows = crossover.rows(cells)
    blanks = {
        (row["batch"], row["width"]): row["log2"]
        for row in rows
        if row["kind"] == "blank"
    }
    assert len(blanks) == crossover.PLANNED - len(cells)
    assert (blanks[5, 5], blanks[11, 12]) == (-1, 1)
    ties = {(r["batch"], r["width"]) for r in rows if r["kind"] == "tie"}
    assert ties == {(12, 5)}


@pytest.mark.parametrize(
    ("key", "tab"),
    [
        ("race_task", "The race"),
        ("race_model", "The race"),
        ("profiled_model", "The profile"),
    ],
)
def test_compare_offers_only_what_it_can_measure(key, tab):
    """Whatever task or model is chosen, the page is drawn to its end."""
    at = open_page("pages/5_Compare.py", tab=tab)
    for index in range(len(at.selectbox(key=key).options)):
        at.selectbox(key=key).select_index(index).run()
        assert not at.exception
        assert not at.warning
