"""Names and numbers as people read them."""

import re
from dataclasses import fields, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from core import config as configs
from core import criteria, models
from core.config import RunConfig
from core.measure.environment import Environment
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


@settings(deadline=None)
@given(st.lists(CONFIGS, min_size=2, max_size=6))
def test_differences_are_told_and_nothing_else(shown: list[RunConfig]) -> None:
    """Each setting in which the runs differ, and none that they share."""
    differing = {
        field.name
        for field in fields(RunConfig)
        if len({getattr(each, field.name) for each in shown}) > 1
    }
    for told, each in zip(format.differences(shown), shown, strict=True):
        said = told.split(", ")
        if differing:
            assert set(said) == {format.setting(each, field) for field in differing}
        else:
            assert len(said) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ["ANN", "ANN"]),
        ({"learning_rate": 0.01}, ["lr 0.001", "lr 0.01"]),
        ({"feed": "device"}, ["data in memory", "data on the device"]),
        ({"augment": True}, ["flips off", "flips on"]),
        ({"model": "cnn", "batch_size": 256}, ["ANN, batch 64", "CNN, batch 256"]),
    ],
)
def test_differences_read_well(change: dict, told: list[str]) -> None:
    """Two runs are told apart in the words of the controls."""
    assert format.differences([RunConfig(), replace(RunConfig(), **change)]) == told


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1))
@example(1_234_567)
def test_seeds_are_told_in_full(seed: int) -> None:
    """A seed that somebody wants to repeat is not rounded."""
    assert format.setting(RunConfig(seed=seed), "seed") == f"seed {seed}"


def test_every_choice_has_a_name() -> None:
    """The controls can show every value that can be chosen."""
    chosen = {value for choices in configs.CHOICES.values() for value in choices}
    assert chosen <= set(format.NAMES)


def test_every_model_and_criterion_has_a_class() -> None:
    """The Train page names the class that each of them really is."""
    for built in (models.MODELS, criteria.CRITERIA):
        for name, kind in built.items():
            assert format.CLASSES[name] == kind.__name__


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (3.42, "3.4 s"),
        (60, "1 min 0 s"),
        (80, "1 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500, "2 h 5 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """A duration is told in the two units that matter."""
    assert format.duration(seconds) == text


@settings(deadline=None)
@given(st.floats(0, 1e6))
@example(59.96)
def test_durations_read_back(seconds: float) -> None:
    """A duration is right to a part of its last unit, and no minute has 60 seconds."""
    parts = read(format.duration(seconds), SECONDS)
    told = sum(number * SECONDS[unit] for number, unit in parts)
    slack = {"s": 0.051 if len(parts) == 1 else 0.51, "min": 60}[parts[-1][1]]
    assert abs(told - seconds) <= slack
    assert all(number < 60 for number, unit in parts if unit != "h")


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (47_040_016, "47 MB"),
        (25.3e9, "25.3 GB"),
        (None, "unknown"),
    ],
)
def test_sizes(count: float | None, text: str) -> None:
    """A size has three digits and the unit that suits it."""
    assert format.size(count) == text


@settings(deadline=None)
@given(st.integers(0, 10**15 - 10**13))
@example(999_700)
def test_sizes_read_back(count: int) -> None:
    """A size is right to half a percent, and written without an exponent."""
    ((number, unit),) = read(format.size(count), BYTES)
    assert number * BYTES[unit] == pytest.approx(count, rel=0.005)
    assert number < 1000


@pytest.mark.parametrize(("threads", "said"), [(1, "1 CPU thread,"), (4, "4 CPU th")])
def test_provenance_has_all_that_matters(threads: int, said: str) -> None:
    """The caption names device, platform, threads and versions."""
    text = format.provenance(
        Environment("cpu", "Abacus 9", "CPU", threads, "9.8.7", "3.21", "Linux")
    )
    for part in ("Abacus 9", "CPU", said, "9.8.7", "3.21"):
        assert part in text


def test_powers_of_two_are_whole_numbers():
    """The sizes that are measured read as 4 KB and 256 MB."""
    assert format.power_of_two(4096) == "4 KB"
    assert format.power_of_two(2**28) == "256 MB"
    assert format.power_of_two(512) == "512 B"


def test_shapes_read_as_products():
    """A scalar, which has no dimensions, is called so."""
    assert format.shape((64, 1, 28, 28)) == "64 × 1 × 28 × 28"
    assert format.shape(()) == "scalar"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(4.71, 2, "4.7"), (2345.6, 2, "2,300"), (28418.3, 3, "28,400"), (0.04, 2, "0.04")],
)
def test_a_factor_is_rounded_without_an_exponent(value, digits, text):
    """As many digits as count, then zeros; thousands are set apart."""
    assert format.rounded(value, digits) == text


def test_the_middle_half_leaves_out_both_ends():
    """A hiccup in one of many readings does not move it; two values are enough."""
    assert format.middle_half([1.0, 2.0, 3.0, 4.0, 500.0]) == (2.0, 4.0)
    low, high = format.middle_half([1.0, 2.0])
    assert 1 <= low <= high <= 2


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        *((-1, "just now"), (59, "just now"), (60, "1 minute ago")),
        *((3 * 3600 + 59, "3 hours ago"), (86400 * 40, "40 days ago")),
    ],
)
def test_how_long_it_has_been(seconds: float, said: str) -> None:
    """In whole units, rounded down: nothing is older than it is said to be."""
    assert format.ago(seconds) == said
