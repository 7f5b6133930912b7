import re
from dataclasses import replace

import pytest

from core.lessons.train import progress_page as progress
from core.results import LossPoint
from core.ui import guess, runs
from tests.app.runs.made_up import CONFIG, run
from tests.figures import figures


@pytest.fixture(autouse=True)
def numbers(monkeypatch):
    monkeypatch.setattr(runs, "number", lambda run_id, _: int(run_id))
    monkeypatch.setattr(progress.answers, "of_visitor", dict)


def test_runs_are_named_with_the_settings_that_differ_if_few_do():
    before = run("1", 3.0, 0.9)
    told = progress.finding(before, run("2", 1.0, 0.9, batch_size=256))
    assert figures(told)[:7] == ["2", "256", "1.0", "90", "3.0", "1", "64"]
    many = run("2", 1.0, 0.9, model="cnn", epochs=5, augment=True)
    assert figures(progress.finding(before, many))[:2] == ["2", "1.0"]


def test_before_the_end_there_is_a_question_in_its_place():
    before, now = run("1", 1.0, 0.9), run("2", 1.0, model="cnn")
    now = replace(now, job=replace(now.job, status="running", value=None))
    asked = progress.finding(before, now)
    assert re.search(r"\brun 2 \(CNN\).+\brun 1 \(ANN\)", asked)
    same = replace(now, job=replace(now.job, arguments=(replace(CONFIG, seed=1),)))
    match = progress.words("same_settings", now="Run 2", before="run 1 (seed 0)")
    assert progress.finding(before, same) == match
    stopped = replace(now, job=replace(now.job, status="cancelled"))
    assert progress.finding(before, stopped) == ""
    lost = replace(run("2", 1.0, 0.1), losses=(LossPoint(1, 1.0, 99.0),))
    assert progress.rival([before, lost, stopped]) is before


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (["2", progress.YES], guess.worth(progress.YES, (progress.YES,))),
        (["2", progress.SAME], guess.worth(progress.SAME, (progress.YES,))),
        (["1", progress.YES], ""),  # another run's
        (None, ""),
    ],
)
def test_the_guess_stays_beside_the_finding(monkeypatch, kept, said):
    before, now = run("1", 3.0, 0.9), run("2", 1.0, 0.91, batch_size=256)
    alone = progress.finding(before, now)
    monkeypatch.setattr(progress.answers, "of_visitor", lambda: {progress.GUESS: kept})
    assert progress.finding(before, now) == f"{alone} {said}".rstrip()
