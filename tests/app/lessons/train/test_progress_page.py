from dataclasses import replace

import pytest

from core.lessons.train import progress_page as progress
from core.results import LossPoint
from core.ui import charts, runs
from tests.app.runs.made_up import CONFIG, run


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    monkeypatch.setattr(runs, "number", lambda run_id, _: int(run_id))
    monkeypatch.setattr(progress, "palette", lambda: charts.LIGHT)
    monkeypatch.setattr(progress.answers, "of_visitor", dict)


def test_runs_are_named_with_the_settings_that_differ_if_few_do():
    before = run("1", 3.0, 0.9)
    told = progress.finding(before, run("2", 1.0, 0.9, batch_size=256))
    assert told.startswith("**Run 2 (batch 256) is faster: 1.0 s to reach 90%, 3")
    assert "as fast as run 1 (batch 64)" in told
    many = run("2", 1.0, 0.9, model="cnn", epochs=5, augment=True)
    assert progress.finding(before, many).startswith("**Run 2 is faster")


def test_before_the_end_there_is_a_question_in_its_place():
    before, now = run("1", 1.0, 0.9), run("2", 1.0, model="cnn")
    now = replace(now, job=replace(now.job, status="running", value=None))
    asked = progress.finding(before, now)
    assert asked.startswith("**Will run 2 (CNN) need fewer seconds than run 1 (ANN)")
    same = replace(now, job=replace(now.job, arguments=(replace(CONFIG, seed=1),)))
    assert "their times should match" in progress.finding(before, same)
    stopped = replace(now, job=replace(now.job, status="cancelled"))
    assert progress.finding(before, stopped) == ""
    lost = replace(run("2", 1.0, 0.1), losses=(LossPoint(1, 1.0, 99.0),))
    assert progress.rival([before, lost, stopped]) is before


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (["2", "Yes"], "You guessed right."),
        (["2", "About the same"], "You guessed: about the same."),
        (["1", "Yes"], "the other way around."),  # another run's
        (None, "the other way around."),
    ],
)
def test_the_guess_stays_beside_the_finding(monkeypatch, kept, said):
    monkeypatch.setattr(progress.answers, "of_visitor", lambda: {progress.GUESS: kept})
    before, now = run("1", 3.0, 0.9), run("2", 1.0, 0.91, batch_size=256)
    assert progress.finding(before, now).endswith(said)


def test_the_legend_has_a_row_a_run_with_a_color_of_its_own():
    shown = [run("1", 1.0, 0.8, 0.91), run("2", 1.0, 0.91, seed=1)]
    rows = progress.legend_table(shown).to_pylist()
    assert [row["What differs"] for row in rows] == ["seed 0", "seed 1"]
    assert [row["Seconds to 90%"] for row in rows] == ["2.0", "1.0"]
    assert {row["Accuracy"] for row in rows} == {"91.00%"}
    assert len({row["Color"] for row in rows}) == 2


def test_a_new_run_is_drawn_whatever_was_ticked_before_it(monkeypatch):
    first, second, third = (run(str(n), 1.0, 0.9) for n in (1, 2, 3))
    state: dict[str, dict] = {}
    monkeypatch.setattr(progress.st, "session_state", state)
    monkeypatch.setattr(
        progress.st, "dataframe", lambda *_, key, **__: state.setdefault(key, {})
    )
    progress.legend([first, second])
    (boxes,) = state.values()
    boxes["selection"] = {"rows": [1]}
    assert progress.ticked([first, second]) == [second]
    assert progress.ticked([first, second, third]) == [first, second, third]
