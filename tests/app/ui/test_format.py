import re
from dataclasses import fields, replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import config as configs
from core import loss_functions, models
from core.config import RunConfig
from core.ui import format

CONFIGS = st.sampled_from(configs.TASKS).flatmap(
    lambda task: st.builds(
        RunConfig,
        task=st.just(task),
        model=st.sampled_from(configs.MODELS_FOR[task]),
        criterion=st.sampled_from(configs.CRITERIA_FOR[task]),
        device=st.sampled_from(configs.DEVICES),
        feed=st.sampled_from(configs.FEEDS),
        schedule=st.sampled_from(configs.SCHEDULES),
        epochs=st.integers(1, 50),
        batch_size=st.integers(16, 4096),
        learning_rate=st.sampled_from([1e-4, 1e-3, 0.5]),
        augment=st.booleans() if task in configs.IMAGE_TASKS else st.just(False),
    )
)
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}
BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


def read(text: str, units: dict[str, float]) -> list[tuple[float, str]]:
    """[(1.0, "min"), (20.0, "s")] for "1 min 20 s"; fails on anything else."""
    parts = re.findall(r"(\d+(?:\.\d+)?) (\w+)", text)
    assert " ".join(f"{number} {unit}" for number, unit in parts) == text
    assert all(unit in units for _, unit in parts)
    return [(float(number), unit) for number, unit in parts]


@given(st.lists(CONFIGS, min_size=2, max_size=6))
def test_only_differing_settings_are_listed(runs: list[RunConfig]) -> None:
    differing = {
        field.name
        for field in fields(RunConfig)
        if len({getattr(run, field.name) for run in runs}) > 1
    }
    for text, run in zip(format.differences(runs), runs, strict=True):
        parts = text.split(", ")
        if differing:
            assert set(parts) == {format.setting(run, field) for field in differing}
        else:
            assert len(parts) == 1


@pytest.mark.parametrize(
    ("change", "texts"),
    [
        ({}, ["ANN", "ANN"]),
        ({"learning_rate": 0.01}, ["lr 0.001", "lr 0.01"]),
        ({"model": "cnn", "batch_size": 256}, ["ANN, batch 64", "CNN, batch 256"]),
    ],
)
def test_differences_read_well(change: dict, texts: list[str]) -> None:
    assert format.differences([RunConfig(), replace(RunConfig(), **change)]) == texts
    rates = [RunConfig(epochs=3 + n // 2, learning_rate=0.1 + n) for n in range(3)]
    assert format.differences(rates)[0] == "lr 0.1, 3 epochs"


def test_every_choice_has_a_name() -> None:
    chosen = {value for choices in configs.CHOICES.values() for value in choices}
    assert chosen <= set(format.NAMES)


def test_every_model_and_criterion_has_a_class() -> None:
    for built in (models.MODELS, loss_functions.CRITERIA):
        for name, kind in built.items():
            assert format.CLASSES[name] == kind.__name__


@given(st.floats(0, 1e6))
@example(59.96)
def test_durations_read_back(seconds: float) -> None:
    parts = read(format.duration(seconds), SECONDS)
    total = sum(number * SECONDS[unit] for number, unit in parts)
    unit = "s" if seconds < 3600 else "min"  # whole minutes and hours stand alone
    slack = {"s": 0.051 if seconds < 59.95 else 0.51, "min": 60}[unit]
    assert abs(total - seconds) <= slack
    assert all(number < 60 for number, unit in parts if unit != "h")


@given(st.integers(0, 10**15 - 10**13))
@example(0)
@example(999)
@example(999_700)
def test_sizes_read_back(count: int) -> None:
    assert format.size(None) == "unknown"
    ((number, unit),) = read(format.size(count), BYTES)
    assert number * BYTES[unit] == pytest.approx(count, rel=0.005)
    assert number < 1000


def test_powers_of_two_are_whole_numbers():
    assert format.power_of_two(4096) == "4 KB"
    assert format.power_of_two(2**28) == "256 MB"
    assert format.power_of_two(512) == "512 B"


def test_the_middle_half_leaves_out_both_ends():
    assert format.middle_half([1.0, 2.0, 3.0, 4.0, 500.0]) == (2.0, 4.0)
    low, high = format.middle_half([1.0, 2.0])
    assert 1 <= low <= high <= 2


@pytest.mark.parametrize(
    ("seconds", "sentence"),
    [
        *((-1, "just now"), (59, "just now"), (60, "1 minute ago")),
        *((3 * 3600 + 59, "3 hours ago"), (86400 * 40, "40 days ago")),
    ],
)
def test_how_long_it_has_been(seconds: float, sentence: str) -> None:
    assert format.ago(seconds) == sentence
