import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.home import course_page as course
from core.home.machine_page import Records
from tests.app import samples

NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.fixture
def measure(monkeypatch):
    """Sets what was measured last, by the function's address."""

    def set_to(values: dict[str, object]) -> None:
        jobs = {name: SimpleNamespace(value=value) for name, value in values.items()}
        monkeypatch.setattr(course.last_measurement, "newest", jobs.get)

    return set_to


def ratios() -> dict[str, list[str]]:
    """The ratios that the course map shows of each lesson, or the ends of a range."""
    lines = course.by_lesson(Records()).items()
    return {title: NUMBER.findall(text.partition("×")[0]) for title, text in lines}


def test_figures_appear_only_after_their_page_showed_them(measure, monkeypatch):
    values = {
        course.race.RaceLab.address: samples.RACE,
        course.ladder.PANEL.address: samples.CLIMBED,
        course.cost.CostLab.address: samples.COST,
    }
    measure(values)
    monkeypatch.setattr(course.guess, "of", lambda _: None)
    monkeypatch.setattr(course.rungs, "is_revealed", lambda _: False)
    assert course.by_lesson(Records()) == {}
    monkeypatch.setattr(course.guess, "of", lambda _: course.guess.JUST_SHOW)
    monkeypatch.setattr(course.rungs, "is_revealed", lambda _: True)
    assert ratios() == {"Compare": ["1.19"], "Speed": ["13"], "Scale": ["1.20"]}


@pytest.mark.parametrize(
    ("times", "figures"), [(2, {"Compare": ["1.14", "2.56"]}), (9, {})]
)
def test_a_measurement_that_is_not_sure_has_no_ratio(
    measure, monkeypatch, times, figures
):
    slow, *_ = samples.RACE.counted(0)
    uneven = replace(slow, train_seconds=times * slow.train_seconds)
    trials = (uneven if trial is slow else trial for trial in samples.RACE.trials)
    one, more, two, *rest = samples.COST.steps
    either = replace(two, seconds=(0.001, 0.0014) * 2 + (0.0012,))  # faster or slower
    values = {
        course.race.RaceLab.address: replace(samples.RACE, trials=tuple(trials)),
        course.cost.CostLab.address: replace(
            samples.COST, steps=(one, more, either, *rest)
        ),
    }
    measure(values)
    monkeypatch.setattr(course.guess, "of", lambda _: course.guess.JUST_SHOW)
    assert ratios() == figures
