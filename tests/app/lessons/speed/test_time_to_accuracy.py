import re
import subprocess
import sys
from collections import deque
from dataclasses import replace
from inspect import getsource
from pathlib import Path

import pytest
import torch
from torch import nn

from core import models
from core.config import IMAGE_MODELS, RunConfig
from core.data import datasets, sprites
from core.errors import CancelledError
from core.lessons.speed import recipe, time_to_accuracy
from core.lessons.speed.recipe import ANN, CNN, Recipe
from core.lessons.speed.time_to_accuracy_result import TARGET, Tested
from core.models import MODELS, count_parameters
from core.training import Training
from core.watch import Watch
from tests.app import samples
from tests.app.data.mirror import NAMES, header

pytestmark = pytest.mark.usefixtures("one_thread")
FEW = datasets.Dataset(
    "",
    (),
    datasets.Split(*sprites.draw(640, seed=0)),
    datasets.Split(*sprites.draw(60, seed=1)),
)


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    monkeypatch.setattr(datasets, "load", lambda _: FEW)


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
def test_every_way_is_tested_after_each_epoch(monkeypatch, half):
    monkeypatch.setattr(recipe, "has_bfloat16", lambda _: half)
    reported = []
    result = time_to_accuracy.measure("sprites", "cpu", 2, Watch(reported.append))
    assert tuple(reported) == result.tests
    ways = [way for training in time_to_accuracy.TRAININGS for way in training]
    assert result.ways == [way for way in ways if half or way != "half"]
    for way in result.ways:
        first, second = (test for test in result.tests if test.way == way)
        assert (first.epoch, second.epoch) == (1, 2)
        assert 0 < first.seconds < second.seconds


def test_the_target_is_reached_at_the_first_test_that_finds_it():
    shares = enumerate((0.5, TARGET, 1.0), 1)
    tests = tuple(Tested("mirror", epoch, 10.0 * epoch, n) for epoch, n in shares)
    result = replace(samples.ACCURACIES, tests=tests)
    assert result.figures("mirror") == (10.0, 20.0, 1.0)
    missed = replace(result, tests=tests[:1])
    assert missed.figures("mirror") == (10.0, None, 0.5)


@pytest.mark.parametrize("before", [0, 9])
def test_it_is_canceled_between_two_steps(before):
    answers = iter([False] * before + [True])
    with pytest.raises(CancelledError):
        time_to_accuracy.measure("sprites", "cpu", 2, Watch(cancelled=answers.__next__))
    assert next(answers, None) is None


@pytest.mark.parametrize("settings", [ANN, CNN])
def test_the_recipe_trains_the_models_of_the_app(settings):
    ours, its = MODELS[settings.model](), recipe.build(settings, FEW.train.images)
    assert count_parameters(its) == count_parameters(ours) < 110_000
    weights = [w.shape for w in its.parameters()]
    assert weights == [w.shape for w in ours.parameters()]


def test_whitened_filters_answer_without_correlation():
    images = FEW.train.images.float() / 255
    answers = nn.functional.conv2d(images, recipe.whitening(images)[:8])
    answers = answers.transpose(0, 1).flatten(1)
    torch.testing.assert_close(answers.corrcoef(), torch.eye(8), atol=1e-2, rtol=0)


def test_a_mirror_image_has_the_answer_of_its_image():
    model = recipe.build(Recipe(), FEW.train.images).eval()
    images, labels = FEW.test.images, FEW.test.labels
    for test in (Recipe(), Recipe(half=False)):
        share = recipe.accuracy(test, model, (images, labels))
        assert recipe.accuracy(test, model, (images.flip(-1), labels)) == share
    assert model.training


def test_the_same_seed_gives_the_same_weights():
    def weights(half):
        torch.manual_seed(3)
        model = recipe.build(Recipe(), FEW.train.images)
        data = FEW.train.images, FEW.train.labels
        deque(recipe.train(Recipe(half=half, epochs=1), model, data), maxlen=0)
        return torch.cat([w.detach().flatten() for w in model.parameters()])

    assert torch.equal(weights(False), weights(False))
    changed = not torch.equal(weights(False), weights(True))
    assert changed == recipe.has_bfloat16(torch.device("cpu"))


@pytest.mark.parametrize("recipes", [ANN, CNN])
def test_the_fast_setting_is_the_recipe_to_the_digit(recipes):
    config = RunConfig.with_recipe(
        fast=True, task="sprites", model=recipes.model, device="cpu", seed=3
    )
    ours = Training(config, FEW.train)
    # The recipe draws its orders and flips from the generator of the first weights.
    ours.feed.order.generator = torch.default_generator
    losses = [loss for _ in range(config.epochs) for loss in ours.train_epoch()]
    score, _ = ours.evaluate(ours.in_order(FEW.test))

    torch.manual_seed(3)
    its = recipe.build(recipes, FEW.train.images)
    expected = [*recipe.train(recipes, its, (FEW.train.images, FEW.train.labels))]
    assert torch.stack(losses).tolist() == torch.stack(expected).tolist()
    share = recipe.accuracy(recipes, its, (FEW.test.images, FEW.test.labels))
    assert score.accuracy == share


def test_the_recipe_and_the_app_share_their_parts():
    for name in ("whitening", "has_bfloat16"):
        ours, its = (getsource(getattr(file, name)) for file in (models, recipe))
        assert ours == its


@pytest.mark.slow
@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_the_recipe_runs_as_a_file_taken_home(tmp_path, model):
    """On a few images, in the files of Fashion-MNIST."""
    file = Path(recipe.__file__)
    code = file.read_text("utf-8")
    assert sum(bool(line) for line in code.splitlines()) <= 120
    assert not re.search(r"\bcore\b", code)
    parts = (
        part
        for split in (FEW.train, FEW.test)
        for part in (split.images[:, 0], split.labels.byte())
    )
    raw = tmp_path / "FashionMNIST" / "raw"
    raw.mkdir(parents=True)
    for name, part in zip(NAMES, parts, strict=True):
        data = header(tuple(part.shape)) + part.contiguous().numpy().tobytes()
        (raw / name).write_bytes(data)
    (tmp_path / "recipe.py").write_text(code, "utf-8")
    command = [sys.executable, "recipe.py", "--model", model, "--data", str(tmp_path)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    share = re.fullmatch(r"Test accuracy after .* seconds: ([\d.]+)%\n", ran.stdout)
    assert share
    assert 25 < float(share[1]) <= 100
