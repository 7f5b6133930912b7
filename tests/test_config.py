"""What a configuration accepts, and what it says of the rest."""

import re
from dataclasses import FrozenInstanceError, asdict, replace
from math import isfinite
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
    MODELS,
    MODELS_FOR,
    MOST_NOTICES,
    RANGES,
    RECIPES,
    TASKS,
    RunConfig,
    parse,
)

ROOT = Path(__file__).parents[1]
SETTINGS: dict[str, st.SearchStrategy] = {
    **{name: st.sampled_from(choices) for name, choices in CHOICES.items()},
    **{name: st.integers(low, high) for name, (low, high) in RANGES.items()},
    # What every task may have, together; for the rest see the test of how long.
    "epochs": st.integers(1, 50),
    "batch_size": st.integers(16, 4096),
    "learning_rate": st.floats(0, 1e30, exclude_min=True),
    "weight_decay": st.floats(0, 1e30),
    "augment": st.booleans(),
    "pin_memory": st.booleans(),
    "non_blocking": st.booleans(),
    "host": st.sampled_from(["", "gpu-1", "Bär 2"]),
}


def fitting(task: str) -> dict[str, st.SearchStrategy]:
    """Strategies for all settings but the task, each with the values that fit it."""
    settings = {name: each for name, each in SETTINGS.items() if name != "task"}
    return {
        **settings,
        "model": st.sampled_from(MODELS_FOR[task]),
        "criterion": st.sampled_from(CRITERIA_FOR[task]),
        "augment": st.booleans() if task in IMAGE_TASKS else st.just(False),
    }


# Any settings that fit each other; the task stands among them, but for the default one.
GIVEN = st.sampled_from(TASKS).flatmap(
    lambda task: st.fixed_dictionaries({"task": st.just(task)}, optional=fitting(task))
) | st.fixed_dictionaries({}, optional=fitting(RunConfig.task))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("task", "mnist"),
        ("task", None),
        ("model", "rnn"),
        ("model", 3),
        ("model", ["ann"]),
        ("device", "tpu"),
        ("criterion", "mae"),
        ("criterion", "mse"),  # for the default task
        ("model", "simple"),
        ("feed", ""),
        ("schedule", "Constant"),
        ("epochs", 0),
        ("epochs", 201),
        ("epochs", 5.0),
        ("epochs", "5"),
        ("epochs", True),
        ("epochs", None),
        ("batch_size", 0),
        ("batch_size", 4097),
        ("seed", -1),
        ("seed", 2**32),
        ("num_workers", -1),
        ("num_workers", 17),
        ("learning_rate", 0.0),
        ("learning_rate", -1e-3),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("learning_rate", "0.1"),
        ("learning_rate", True),
        ("learning_rate", None),
        pytest.param("learning_rate", 10**400, id="learning_rate-10**400"),
        ("weight_decay", -0.1),
        ("weight_decay", float("nan")),
        ("weight_decay", float("inf")),
        ("weight_decay", "0"),
        ("weight_decay", False),
        ("augment", 1),
        ("augment", "true"),
        ("pin_memory", None),
        ("non_blocking", 1),
        ("host", None),
        ("host", "a" * 64),
        ("host", "two\nlines"),
        ("host", "[a link](https://evil.example)"),
        ("host", "on WWW.evil.example"),
    ],
)
def test_bad_values_are_named(name: str, value: object) -> None:
    """A value that can't be is a ValueError that names the field and the value."""
    with pytest.raises(ValueError, match=rf"^{LABELS[name]} must be .+\.$") as caught:
        RunConfig(**{name: value})  # type: ignore[arg-type]
    assert repr(value)[:50] in str(caught.value)


def test_all_that_is_wrong_is_told() -> None:
    """A sentence for each setting that can't be, and one alone."""
    wrong = {"model": "rnn", "epochs": 0, "batch_size": 5000, "learning_rate": 0.0}
    with pytest.raises(ValueError, match="must be") as caught:
        RunConfig(**wrong)  # type: ignore[arg-type]
    told = re.findall(r"(?:^|\. )([\w ]+) must be", str(caught.value))
    assert told == [LABELS[name] for name in wrong]


@settings(deadline=None)
@given(st.sampled_from(sorted(RANGES)), st.integers(-(2**33), 2**33))
def test_whole_numbers_end_at_their_range(name: str, value: int) -> None:
    """A whole number is taken exactly where it lies in the field's range."""
    low, high = RANGES[name]
    small: dict[str, Any] = {"task": "regression", "model": "simple", name: value}
    if low <= value <= high:
        assert getattr(RunConfig(criterion="mse", **small), name) == value
    else:
        with pytest.raises(ValueError, match=LABELS[name]):
            RunConfig(criterion="mse", **small)


@pytest.mark.parametrize(
    ("task", "epochs", "batch_size", "said"),
    [
        ("sprites", 100, 10, ""),  # a textbook's
        ("regression", 200, 4, ""),
        ("fashion-mnist", 3, 1, ""),
        ("fashion-mnist", 4, 1, "at most 3 .* 240,000 steps of fashion-mnist"),
        ("sprites", 200, 10, "at most 166 .* 240,000 steps of sprites"),
        ("fashion-mnist", 51, 4096, "at most 50 .* 3,060,000 samples of fashion-mnist"),
    ],
)
def test_how_long_a_run_may_be_depends_on_its_task(
    task: str, epochs: int, batch_size: int, said: str
) -> None:
    """Many epochs and small batches are taken as long as others needn't wait for hours.

    What is too long is refused with its size, and with how many epochs it may have.
    """
    given = {"task": task, "epochs": epochs, "batch_size": batch_size}
    if not said:
        assert RunConfig.with_recipe(**given).epochs == epochs
        return
    with pytest.raises(ValueError, match=f"Epochs must be {said}"):
        RunConfig.with_recipe(**given)


@settings(deadline=None)
@given(st.floats())
def test_learning_rates_are_positive_and_finite(rate: float) -> None:
    """Any positive finite learning rate is taken, and no other."""
    if isfinite(rate) and rate > 0:
        assert RunConfig(learning_rate=rate).learning_rate == rate
    else:
        with pytest.raises(ValueError, match="Learning rate"):
            RunConfig(learning_rate=rate)


def test_frozen() -> None:
    """A configuration that was checked can't be changed afterwards."""
    with pytest.raises(FrozenInstanceError):
        RunConfig().epochs = 0  # type: ignore[misc]


@settings(deadline=None)
@given(GIVEN)
def test_recipe_gives_way(given: dict[str, Any]) -> None:
    """What is given wins over the model's recipe, which wins over the defaults."""
    task = given.get("task", RunConfig.task)
    fit = {"model": MODELS_FOR[task][0], "criterion": CRITERIA_FOR[task][0]}
    recipe = RECIPES[given.get("model", fit["model"])]
    expected = {**asdict(RunConfig()), **fit, **recipe, **given}
    assert asdict(RunConfig.with_recipe(**given)) == expected


def test_default_is_the_recipe_of_the_default_model() -> None:
    """Whoever sets nothing trains as the recipe says; another model has another."""
    assert RunConfig.with_recipe() == RunConfig()
    for model in set(MODELS_FOR[RunConfig.task]) - {RunConfig.model}:
        assert RunConfig.with_recipe(model=model) != RunConfig(model=model)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_chooses_what_fits_it(task: str) -> None:
    """A task alone is a whole configuration, of a model and a criterion that fit."""
    config = RunConfig.with_recipe(task=task)
    assert config == RunConfig.from_strings({"task": task})[0]
    assert config.model in MODELS_FOR[task]
    assert config.criterion in CRITERIA_FOR[task]
    assert config.has_images == (task in IMAGE_TASKS)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ["model", "criterion"])
def test_what_does_not_fit_is_a_sentence(task: str, name: str) -> None:
    """Exactly what fits the task is taken; the rest names what would."""
    fit = {"model": MODELS_FOR, "criterion": CRITERIA_FOR}[name][task]
    for value in CHOICES[name]:
        if value in fit:
            assert getattr(RunConfig.with_recipe(task=task, **{name: value}), name)
        else:
            said = f"^{LABELS[name]} must be .*{task}"
            with pytest.raises(ValueError, match=said) as told:
                RunConfig.with_recipe(task=task, **{name: value})
            assert all(each in str(told.value) for each in fit)


def test_there_is_nothing_to_flip_in_regression() -> None:
    """Flips without images are refused, not ignored."""
    with pytest.raises(ValueError, match="Flip images must be false"):
        RunConfig.with_recipe(task="regression", augment=True)
    config, (notice,) = RunConfig.from_strings({"task": "regression", "augment": "1"})
    assert not config.augment
    assert "Flip images" in notice


def test_every_model_has_a_recipe_that_a_task_takes() -> None:
    """Each model belongs to a task, which its recipe fits."""
    assert {model for each in MODELS_FOR.values() for model in each} == set(MODELS)
    for task, fit in MODELS_FOR.items():
        for model in fit:
            assert RunConfig.with_recipe(task=task, model=model).model == model


@pytest.mark.parametrize("model", FAST)
def test_the_fast_setting_gives_way_too(model: str) -> None:
    """It is the model's fast recipe on the defaults, under whatever else is given."""
    assert FAST[model].keys() >= RECIPES[model].keys()  # else half of it would stay
    fast = RunConfig.with_recipe(fast=True, model=model)
    assert fast == RunConfig(**{"model": model, **FAST[model]})
    given = {"fast": True, "model": model, "epochs": 9, "task": "sprites"}
    expected = replace(fast, epochs=9, task="sprites")
    assert RunConfig.with_recipe(**given) == expected
    texts = {name: str(value) for name, value in reversed(given.items())}
    assert RunConfig.from_strings(texts) == (expected, [])


@pytest.mark.parametrize("text", ["false", "0"])
def test_not_fast_is_the_default(text: str) -> None:
    """fast=false says nothing new, for any task."""
    for task in TASKS:
        expected = RunConfig.with_recipe(task=task)
        assert RunConfig.from_strings({"task": task, "fast": text}) == (expected, [])


def test_what_has_no_fast_setting_says_so() -> None:
    """Regression's net has none: a sentence that names those that have."""
    with pytest.raises(ValueError, match=r"^fast must be false .* ann and cnn have"):
        RunConfig.with_recipe(task="regression", fast=True)
    for texts in ({"task": "regression", "fast": "1"}, {"fast": "quickly"}):
        config, (notice,) = RunConfig.from_strings(texts)
        assert notice.startswith("fast must be ")
        assert config == RunConfig.with_recipe(task=config.task)


def test_recipe_of_no_model_is_a_bad_value() -> None:
    """A model that can't be is the same ValueError with a recipe as without."""
    with pytest.raises(ValueError, match="Model must be one of"):
        RunConfig.with_recipe(model=["ann"])


@settings(deadline=None)
@given(GIVEN, st.randoms(use_true_random=False))
def test_texts_become_values(given: dict[str, Any], dice: Random) -> None:
    """Settings written as texts are read back as they were, in any order."""
    names = dice.sample(sorted(given), len(given))
    texts = {name: str(given[name]) for name in names}
    assert RunConfig.from_strings(texts) == (RunConfig.with_recipe(**given), [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("epochs", "0"),
        ("epochs", "many"),
        ("epochs", ""),
        ("epochs", "2.0"),
        ("batch_size", "1e3"),
        ("learning_rate", "nan"),
        ("learning_rate", "1e999"),
        ("learning_rate", "fast"),
        ("augment", "yes"),
        ("model", "rnn"),
        ("model", "simple"),
        ("criterion", "gaussian"),
        ("task", "clothes"),
        ("fast", "very"),
        ("colour", "red"),
        ("__init__", "x"),
    ],
)
def test_bad_texts_are_ignored(name: str, text: str) -> None:
    """A bad text or an unknown name costs one notice that names it, and no more."""
    texts = {"seed": "7", name: text, "num_workers": "3"}
    config, (notice,) = RunConfig.from_strings(texts)
    assert LABELS.get(name, name) in notice
    assert "ignored" in notice
    assert config == RunConfig(seed=7, num_workers=3)


def test_each_bad_text_has_its_notice() -> None:
    """Several bad texts are told one by one, in their order."""
    texts = {"epochs": "0", "colour": "red", "seed": "1", "augment": "perhaps"}
    config, notices = RunConfig.from_strings(texts)
    for notice, name in zip(notices, ["epochs", "colour", "augment"], strict=True):
        assert LABELS.get(name, name) in notice
    assert config == RunConfig(seed=1)


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from([*SETTINGS, "", "run"]) | st.text(), st.text()),
)
def test_any_texts_give_a_configuration(texts: dict[str, str]) -> None:
    """No address can break the page: at most one notice a text, and it is told."""
    config, notices = RunConfig.from_strings(texts)
    taken = sum(
        name in SETTINGS and getattr(config, name) == _parsed(name, text)
        for name, text in texts.items()
    )
    assert len(notices) <= min(len(texts), MOST_NOTICES + 1)
    assert taken + len(notices) >= len(texts) or len(notices) > MOST_NOTICES


def _parsed(name: str, text: str) -> object:
    try:
        return parse(name, text)
    except ValueError:
        return None


def test_an_address_with_a_thousand_mistakes_gets_a_few_notices() -> None:
    """Of a megabyte each, they are told in some lines, and how many there were."""
    long = "x" * 1_000_000
    texts = {"seed": "7", "epochs": "9" * 1_000_000, "task": long, long: long}
    config, notices = RunConfig.from_strings(
        texts | dict.fromkeys(map(str, range(1000)), "")
    )
    assert config == RunConfig(seed=7)
    assert len("".join(notices)) < 1_000
    assert "1,003 values were ignored" in notices[-1]


def test_model_sets_the_recipe_wherever_it_stands() -> None:
    """The recipe of a model named last does not overrule what came before it."""
    config, notices = RunConfig.from_strings({"epochs": "3", "model": "cnn"})
    assert config == RunConfig.with_recipe(model="cnn", epochs=3)
    assert not notices


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("epochs", "12", 12),
        ("learning_rate", "1e-2", 0.01),
        ("learning_rate", "1", 1.0),
        ("augment", "TRUE", True),
        ("augment", "0", False),
        ("task", "sprites", "sprites"),
    ],
)
def test_parse(name: str, text: str, value: object) -> None:
    """A text becomes a value of the field's own type."""
    assert parse(name, text) == value
    assert type(parse(name, text)) is type(value)


@pytest.mark.parametrize(
    ("name", "text"), [("epochs", "x"), ("learning_rate", "x"), ("augment", "2")]
)
def test_parse_names_what_it_refuses(name: str, text: str) -> None:
    """A text that stands for nothing is a ValueError with the field and the text."""
    with pytest.raises(ValueError, match=rf"{LABELS[name]}.+'{text}'"):
        parse(name, text)
