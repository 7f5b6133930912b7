from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import (
    CHOICES,
    CRITERIA_FOR,
    FAST,
    IMAGE_TASKS,
    LABELS,
    MODELS_FOR,
    MOST_NOTICES,
    RANGES,
    RECIPES,
    TASKS,
    RunConfig,
    parse,
)
from tests.figures import figures

ROOT = Path(__file__).parents[2]
SETTINGS: dict[str, st.SearchStrategy] = {
    **{name: st.sampled_from(choices) for name, choices in CHOICES.items()},
    **{name: st.integers(low, high) for name, (low, high) in RANGES.items()},
    # What every task may have, together; for the rest see the test of how long.
    "epochs": st.integers(1, 50),
    "batch_size": st.integers(16, 4096),
    "learning_rate": st.floats(0, 1e30, exclude_min=True),
    "weight_decay": st.floats(0, 1e30),
    **{name: st.booleans() for name in ("augment", "half", "normalize", "mirror")},
    "label_smoothing": st.floats(0, 1, exclude_max=True),
    "dropout": st.floats(0, 1, exclude_max=True),
    "pin_memory": st.booleans(),
    "non_blocking": st.booleans(),
    "host": st.sampled_from(["", "gpu-1", "Bär 2"]),
}


def fitting(task: str) -> dict[str, st.SearchStrategy]:
    """Strategies for all settings but the task, each with the values that fit it."""
    settings = {name: values for name, values in SETTINGS.items() if name != "task"}
    if task not in IMAGE_TASKS:
        for name in ("augment", "half", "label_smoothing", "normalize", "mirror"):
            settings[name] = st.just(getattr(RunConfig, name))
    return {
        **settings,
        "model": st.sampled_from(MODELS_FOR[task]),
        "criterion": st.sampled_from(CRITERIA_FOR[task]),
    }


# Any settings that fit each other; the task stands among them, but for the default one.
GIVEN = st.sampled_from(TASKS).flatmap(
    lambda task: st.fixed_dictionaries({"task": st.just(task)}, optional=fitting(task))
) | st.fixed_dictionaries({}, optional=fitting(RunConfig.task))


NUMBERS = [-0.1, float("nan"), float("inf"), "0.1", True, None, 10**400]
BAD = {
    "task": ["mnist", None],
    "model": ["rnn", 3, ["ann"], "simple"],
    "device": ["tpu"],
    "criterion": ["mae", "mse"],  # the latter for the default task
    "feed": [""],
    "schedule": ["Constant"],
    "epochs": [0, 201, 5.0, "5", True, None],
    "batch_size": [0, 4097],
    "seed": [-1, 2**32],
    "num_workers": [-1, 17],
    "learning_rate": [0.0, *NUMBERS],
    "weight_decay": NUMBERS,
    "augment": [1, "true"],
    "half": [1],
    "label_smoothing": [1.0, *NUMBERS],
    "dropout": [1.0, *NUMBERS],
    "normalize": [None],
    "mirror": ["on"],
    "pin_memory": [None],
    "non_blocking": [1],
    "host": [
        *(None, "a" * 64, "two\nlines"),
        *("[a link](https://evil.example)", "on WWW.evil.example"),
    ],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_values_are_named(name: str) -> None:
    for value in BAD[name]:
        message = rf"^{LABELS[name]} .+\.$"
        with pytest.raises(ValueError, match=message) as caught:
            RunConfig(**{name: value})  # type: ignore[arg-type]
        assert repr(value)[:50] in str(caught.value)


def test_every_wrong_setting_is_reported() -> None:
    wrong = {"model": "rnn", "epochs": 0, "batch_size": 5000, "learning_rate": 0.0}
    in_order = ".+".join(rf"\b{LABELS[name]} " for name in wrong)
    with pytest.raises(ValueError, match=in_order):
        RunConfig(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("task", "epochs", "batch_size", "advice"),
    [
        ("sprites", 100, 10, ""),  # a textbook's
        ("regression", 200, 4, ""),
        ("fashion-mnist", 3, 1, ""),
        ("fashion-mnist", 4, 1, r"\b3: .*\b200,000\b"),
        ("sprites", 200, 10, r"\b166: .*\b200,000\b"),
        ("fashion-mnist", 51, 4096, r"\b50: .*\b3,000,000\b"),
    ],
)
def test_how_long_a_run_may_be_depends_on_its_task(
    task: str, epochs: int, batch_size: int, advice: str
) -> None:
    """Many epochs and small batches are taken as long as others needn't wait for hours.

    What is too long is refused with its size, and with how many epochs it may have.
    """
    choice = {"task": task, "epochs": epochs, "batch_size": batch_size}
    if not advice:
        assert RunConfig.with_recipe(**choice).epochs == epochs
        return
    with pytest.raises(ValueError, match=advice):
        RunConfig.with_recipe(**choice)


@settings(deadline=None)
@given(GIVEN)
def test_recipe_gives_way(choice: dict[str, Any]) -> None:
    task = choice.get("task", RunConfig.task)
    fit = {"model": MODELS_FOR[task][0], "criterion": CRITERIA_FOR[task][0]}
    recipe = RECIPES[choice.get("model", fit["model"])]
    expected = {**asdict(RunConfig()), **fit, **recipe, **choice}
    assert asdict(RunConfig.with_recipe(**choice)) == expected


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["model", "criterion"])
def test_what_does_not_fit_is_a_sentence(task: str, name: str) -> None:
    fit = {"model": MODELS_FOR, "criterion": CRITERIA_FOR}[name][task]
    for value in CHOICES[name]:
        if value in fit:
            assert getattr(RunConfig.with_recipe(task=task, **{name: value}), name)
        else:
            sentence = f"^{LABELS[name]} must be .*{task}"
            with pytest.raises(ValueError, match=sentence) as caught:
                RunConfig.with_recipe(task=task, **{name: value})
            assert all(fitting in str(caught.value) for fitting in fit)


@pytest.mark.parametrize("model", FAST)
def test_the_fast_setting_gives_way_too(model: str) -> None:
    assert FAST[model].keys() >= RECIPES[model].keys()  # else half of it would stay
    fast = RunConfig.with_recipe(fast=True, model=model)
    assert fast == RunConfig(**{"model": model, **FAST[model]})
    choice = {"fast": True, "model": model, "epochs": 9, "task": "sprites"}
    expected = replace(fast, epochs=9, task="sprites")
    assert RunConfig.with_recipe(**choice) == expected
    texts = {name: str(value) for name, value in reversed(choice.items())}
    assert RunConfig.from_strings(texts) == (expected, [])


@settings(deadline=None)
@given(GIVEN, st.randoms(use_true_random=False))
def test_texts_become_values(choice: dict[str, Any], dice: Random) -> None:
    names = dice.sample(sorted(choice), len(choice))
    texts = {name: str(choice[name]) for name in names}
    assert RunConfig.from_strings(texts) == (RunConfig.with_recipe(**choice), [])


BAD_TEXTS = {
    "epochs": ["0", "many", "", "2.0"],
    "batch_size": ["1e3"],
    "learning_rate": ["nan", "1e999", "fast"],
    "augment": ["yes"],
    "model": ["rnn", "simple"],
    "criterion": ["gaussian"],
    "task": ["clothes"],
    "fast": ["very"],
    "color": ["red"],
    "__init__": ["x"],
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_texts_are_ignored(name: str) -> None:
    for text in BAD_TEXTS[name]:
        texts = {"seed": "7", name: text, "num_workers": "3"}
        config, (notice,) = RunConfig.from_strings(texts)
        assert LABELS.get(name, name) in notice
        assert "ignored" in notice
        assert config == RunConfig(seed=7, num_workers=3)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*SETTINGS, "", "run"]) | st.text(), st.text()),
)
def test_any_texts_give_a_configuration(texts: dict[str, str]) -> None:
    config, notices = RunConfig.from_strings(texts)
    used = sum(
        name in SETTINGS and getattr(config, name) == _parsed(name, text)
        for name, text in texts.items()
    )
    assert len(notices) <= min(len(texts), MOST_NOTICES + 1)
    assert used + len(notices) >= len(texts) or len(notices) > MOST_NOTICES


def _parsed(name: str, text: str) -> object:
    try:
        return parse(name, text)
    except ValueError:
        return None


def test_an_address_with_a_thousand_mistakes_gets_a_few_notices() -> None:
    long = "x" * 1_000_000
    texts = {"seed": "7", "epochs": "9" * 1_000_000, "task": long, long: long}
    config, notices = RunConfig.from_strings(
        texts | dict.fromkeys(map(str, range(1000)), "")
    )
    assert config == RunConfig(seed=7)
    assert len("".join(notices)) < 1_000
    assert "1,003" in figures(notices[-1])
