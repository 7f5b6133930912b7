from dataclasses import replace

import pytest

from core.config import RunConfig
from core.home import recorded_gpu_page as page
from core.jobs import measurements
from core.ui import format


def test_what_was_recorded_is_the_usual_setting_of_the_first_run() -> None:
    recorded = page.recording()
    assert recorded is not None
    usual = RunConfig.with_recipe(task="fashion-mnist", epochs=5, seed=3)
    assert recorded.is_like(usual)
    assert not recorded.is_like(RunConfig.with_recipe(task="fashion-mnist", fast=True))
    assert not recorded.is_like(replace(usual, batch_size=128))


def test_the_times_are_scaled_from_the_recorded_trials() -> None:
    recorded = page.recording()
    assert recorded is not None
    text = page.in_words(recorded, 5, here=7.7)
    for seconds, twice in zip(recorded.seconds(5), recorded.seconds(10), strict=True):
        assert twice == pytest.approx(2 * seconds)
        assert format.duration(seconds) in text
    assert "7.7 s" in text
    for others, is_told in ((0.05, False), (0.43, True)):
        told = page.in_words(recorded, 5, 7.7, others)
        assert (f"{others:.0%}" in told) is is_told
    trial = recorded.race.counted(0)[0]
    slower = replace(
        recorded.race,
        trials=tuple(
            replace(
                trial,
                train_seconds=2 * trial.train_seconds,
                evaluate_seconds=2 * trial.evaluate_seconds,
            )
            for trial in recorded.race.trials
        ),
    )
    assert replace(recorded, race=slower).seconds(5) == pytest.approx(
        recorded.seconds(10)
    )
    assert recorded.seconds(5)[0] > trial.seconds
    for size in recorded.batch_sizes:
        assert len(recorded.times_as_fast(size)) > 3


def test_without_recordings_nothing_is_said(monkeypatch) -> None:
    monkeypatch.setattr(measurements, "recorded", lambda: ())
    assert page.recording() is None
    monkeypatch.undo()
    one = measurements.recorded()[:1]
    monkeypatch.setattr(measurements, "recorded", lambda: one)
    assert page.recording() is None
