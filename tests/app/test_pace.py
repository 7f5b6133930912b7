from dataclasses import replace

import pytest

from core import pace
from core.config import FAST, MODELS_FOR, RunConfig
from core.measure.pace_result import LATEST, Pace, Paces
from core.store import codec
from tests.app import samples

CNN = RunConfig.with_recipe(model="cnn")
KNOWN = Paces((Pace(CNN, 1e-3, 1e-4, 20_000),), samples.CARD, "2026-11-28")


def test_a_run_takes_its_epochs_of_training_and_evaluation():
    assert KNOWN.seconds(CNN) == pytest.approx(10 * (60 + 2))
    assert KNOWN.seconds(replace(CNN, epochs=1, seed=7)) == pytest.approx(62)
    assert KNOWN.seconds(replace(CNN, device=samples.CARD.device))


@pytest.mark.parametrize(
    "other",
    [
        {"model": "ann"},
        {"batch_size": 64},
        {"feed": "dataloader"},
        {"device": "cpu"},
        {"item_each_step": True},
        {"half": True},
        {"mirror": True},
        {"task": "sprites"},
    ],
)
def test_what_was_not_timed_is_not_guessed(other):
    assert KNOWN.seconds(replace(CNN, **other)) is None


def test_the_load_is_what_the_latest_runs_took_against_the_idle_machine():
    other = replace(CNN, model="ann")  # of a pace that nothing tells
    assert KNOWN.load([]) == KNOWN.load([(other, 9.0)]) == 1
    one, two = (replace(CNN, epochs=epochs) for epochs in (1, 2))
    assert KNOWN.load([(other, 9.0), (one, 4 * 62)]) == pytest.approx(4)
    # A short run's start counts for little beside a long run.
    assert KNOWN.load([(two, 2 * 62), (one, 2 * 62)]) == pytest.approx(4 / 3)
    old = [(one, 62 * 100)] * 3
    assert KNOWN.load([(one, 62 * 2)] * LATEST + old) == pytest.approx(2)


def test_each_recipe_of_a_task_is_timed(monkeypatch):
    monkeypatch.setattr(pace, "CHUNKS", 1)
    monkeypatch.setattr(pace, "CHUNK_STEPS", 1)
    measured = pace.measure("sprites", "cpu")
    assert codec.loads(codec.dumps(measured), "it") == measured
    for model in MODELS_FOR["sprites"]:
        for fast in (False, True)[: 1 + (model in FAST)]:
            config = RunConfig.with_recipe(fast=fast, task="sprites", model=model)
            assert measured.seconds(config) > 0
