"""core.ui.train.beside: what is said of a run and the one before it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.config import RunConfig
from core.jobs.job import Job
from core.results import Epoch, RunResult
from core.ui import runs
from core.ui.charts import base
from core.ui.runs import Run
from core.ui.train import beside
from tests.samples import PROCESSOR

CONFIG = RunConfig(task="sprites", epochs=3)


def run(name: str, seconds: float, *accuracies: float, **settings) -> Run:
    """A finished run whose epochs took that long each."""
    config = replace(CONFIG, **settings)
    history = tuple(
        Epoch(n, n, 1.0, 1.0, 1.0, seconds, 1e3, test_accuracy=accuracy)
        for n, accuracy in enumerate(accuracies, 1)
    )
    result = RunResult(config, PROCESSOR, 1, history, (), 8, 10, 9.0, b"")
    job = Job(name, runs.RUN, (config,), "train", "me", "finished", value=result)
    return Run(job, None, (), history, None, None)


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    monkeypatch.setattr(runs, "number", lambda run_id, _: int(run_id))
    monkeypatch.setattr(beside, "palette", lambda: base.LIGHT)
    monkeypatch.setattr(beside.answers, "given", dict)


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (
            run("1", 2.0, 0.7, 0.86, 0.87),
            run("2", 1.0, 0.8, 0.86, batch_size=256),
            "Run 2 (batch 256) reaches 85% in 2.0 s, 2.0× as fast as run 1 (batch 64), "
            f"which takes 4.0 s.** {beside.APART}",
        ),
        (
            run("1", 1.0, 0.86),
            run("2", 2.0, 0.8, 0.86, model="cnn", epochs=5, augment=True),
            "Run 1 reaches 85% in 1.0 s, 4.0× as fast as run 2, which takes 4.0 s.** "
            + beside.APART,
        ),
        (
            run("1", 1.0, 0.9),
            run("2", 1.02, 0.91, seed=1),
            "Run 2 (seed 1) and run 1 (seed 0) take about equally long to reach 90%: "
            "1.0 s and 1.0 s.**",
        ),
        (
            run("1", 1.0, 0.3),
            run("2", 1.0, 0.91, learning_rate=0.01),
            "Run 2 (lr 0.01) reaches 80.00% in 9.0 s, "
            "run 1 (lr 0.001) 80.00% in 9.0 s.**",
        ),
    ],
)
def test_the_faster_run_is_told_with_what_it_reached(before, now, said):
    """By what tells the two apart; the level is the highest that both have reached."""
    assert beside.finding(before, now) == f"**{said}"


def test_no_run_is_called_faster_by_less_than_its_own_epochs_differ_by():
    """Twice as fast is no news where epochs of one run take from one to three."""
    before, now = run("1", 2.0, 0.86), run("2", 1.0, 0.86, batch_size=256)
    assert "as fast as" in beside.finding(before, now)
    (epoch,) = now.history
    uneven = (1.0, 1.0, 3.0, 3.0, 3.0)
    history = tuple(replace(epoch, seconds=each) for each in uneven)
    assert "about equally long" in beside.finding(before, replace(now, history=history))


def test_before_the_end_there_is_a_question_in_its_place():
    """So that the page keeps its height."""
    before, now = run("1", 1.0, 0.9), run("2", 1.0, batch_size=128)
    now = replace(now, job=replace(now.job, status="running", value=None))
    asked = "**Is run 2 (batch 128) faster than run 1 (batch 64)?**"
    assert beside.finding(before, now) == asked


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (["2", "Yes"], "You guessed right."),
        (["2", "About the same"], "You guessed about the same."),
        (["1", "Yes"], beside.APART),
        (None, beside.APART),
    ],
)
def test_the_guess_stays_beside_what_was_found(monkeypatch, kept, said):
    """Of this run alone: an earlier one had a guess of its own."""
    monkeypatch.setattr(beside.answers, "given", lambda: {beside.GUESS: kept})
    before, now = run("1", 2.0, 0.9), run("2", 1.0, 0.9, batch_size=256)
    assert beside.finding(before, now).endswith(said)


def test_the_table_has_a_row_a_run_with_a_color_of_its_own():
    """What was not reached is left out, for the table to show as a dash."""
    found = beside.table([run("1", 1.0, 0.8, 0.91), run("2", 1.0, 0.91, seed=1)])
    rows = found.to_pylist()
    assert [row["What differs"] for row in rows] == ["seed 0", "seed 1"]
    assert [row["Seconds to 90%"] for row in rows] == ["2.0", "1.0"]
    assert {row["Accuracy"] for row in rows} == {"91.00%"}
    assert len({row[" "] for row in rows}) == 2


def test_a_new_run_is_drawn_whatever_was_ticked_before_it(monkeypatch):
    """Who has hidden one of two runs sees all three once there is another."""
    first, second, third = (run(str(n), 1.0, 0.9) for n in (1, 2, 3))
    state: dict[str, dict] = {}
    monkeypatch.setattr(beside.st, "session_state", state)
    monkeypatch.setattr(
        beside.st, "dataframe", lambda *_, key, **__: state.setdefault(key, {})
    )
    beside.legend([first, second], "legend")
    (boxes,) = state.values()
    boxes["selection"] = {"rows": [1]}
    assert beside.ticked([first, second], "legend") == [second]
    assert beside.ticked([first, second, third], "legend") == [first, second, third]


def test_the_fast_setting_promises_nothing_until_both_have_run(monkeypatch):
    """Then it is told what they took and reached here, whichever was faster."""
    model = {"task": "sprites", "model": "ann"}
    settings = [vars(RunConfig.with_recipe(fast=f, **model)) for f in (False, True)]
    slow, fast = (
        run(name, seconds, 0.86, **each)
        for name, seconds, each in zip("12", (2.0, 1.0), settings, strict=True)
    )
    found = {each.job: each for each in (slow, fast)}
    monkeypatch.setattr(beside.runs, "view", found.get)
    monkeypatch.setattr(beside, "visitor", lambda: "me")
    for jobs, said in (
        ([slow.job], ""),
        (list(found), "**The fast setting reaches 85% in 1.0 s, 2.0× as fast as"),
    ):
        engine = SimpleNamespace(jobs=lambda *_, jobs=jobs: jobs)
        monkeypatch.setattr(beside, "engine", lambda engine=engine: engine)
        told = beside.both_settings(**model)
        assert told.startswith(said)
        assert bool(told) is bool(said)
