import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count, product
from pathlib import Path

import pytest
import torch

from core import config as configs
from core import run, training
from core.config import RunConfig
from core.data import datasets, fashion_mnist, sprites
from core.results import RunResult
from core.runs import export
from core.watch import NO_CONTROL, Control, Watch

pytestmark = pytest.mark.usefixtures("one_thread")

ANN = RunConfig(task="sprites", epochs=2, batch_size=100, seed=3, device="cpu")
CNN = RunConfig.with_recipe(task="sprites", model="cnn", epochs=1, device="cpu")
FAST_ANN, FAST_CNN = (
    RunConfig.with_recipe(
        fast=True, task="sprites", model=model, epochs=2, device="cpu"
    )
    for model in configs.IMAGE_MODELS
)
CURVE = {"task": "regression", "epochs": 2, "device": "cpu"}
STEERED = (0.007, 0.0003)  # learning rates, set by hand one after the other
TRAIN, TEST = 1500, 400  # sprites, so that drawing and learning take seconds
slow = partial(pytest.param, marks=pytest.mark.slow)
ALLOWED = {"torch", "torchvision", *sys.stdlib_module_names}


@pytest.fixture(scope="module", autouse=True)
def few_sprites() -> Iterator[None]:
    """Runs have some of the sprites only; scripts get as many by `few`."""
    few = replace(
        datasets.load("sprites"),
        train=datasets.Split(*sprites.draw(TRAIN, seed=0)),
        test=datasets.Split(*sprites.draw(TEST, seed=1)),
    )
    load = datasets.load
    datasets.load = lambda task: few if task == "sprites" else load(task)  # type: ignore[assignment]
    yield
    datasets.load = load


def few(script: str) -> str:
    """The script, drawing as few sprites as the runs here have."""
    sizes = "SPRITES_TRAIN, SPRITES_TEST = "
    script, count = re.subn(
        rf"^{sizes}.*", f"{sizes}{TRAIN}, {TEST}", script, flags=re.M
    )
    assert count == 1
    return script


@pytest.fixture(scope="module")
def ann() -> RunResult:
    return training.run(ANN)


def result_of(config: RunConfig, result: RunResult) -> RunResult:
    """Another configuration's result, as far as texts are concerned."""
    if config.has_images:
        return replace(result, config=config)
    epoch = replace(result.history[-1], test_r2=0.5, test_rmse=0.5)
    return replace(result, config=config, history=(epoch,), test_correct=None)


def run_alone(script: str, folder: Path) -> str:
    """Its output in an empty environment, beside the file that draws sprites."""
    shutil.copy(export.SPRITES, folder)
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-s", str(path)],
        cwd=folder,
        env={},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def last_line(result: RunResult) -> str:
    if not result.config.has_images:
        return f"test r2 {result.r2:.4f}, rmse {result.rmse:.4f}"
    return (
        f"test accuracy {result.test_accuracy:.2%} "
        f"({result.test_correct:,} of {result.test_total:,})"
    )


def same_weights(file: Path, result: RunResult) -> bool:
    theirs = torch.load(file, weights_only=True)
    ours = torch.load(io.BytesIO(result.checkpoint), weights_only=True)
    return all(torch.equal(theirs[name], ours[name]) for name in ours)


@pytest.mark.parametrize(
    ("config", "rates"),
    [
        (ANN, ()),
        (CNN, ()),  # with flips, dropout and a one-cycle schedule
        slow(FAST_ANN, ()),
        (FAST_CNN, ()),
        slow(replace(ANN, feed="dataloader"), ()),
        slow(replace(CNN, feed="dataloader"), ()),
        slow(replace(FAST_ANN, feed="dataloader"), ()),
        slow(replace(FAST_CNN, feed="dataloader"), ()),
        slow(replace(ANN, label_smoothing=0.2, mirror=True), ()),
        slow(RunConfig.with_recipe(criterion="mse", **CURVE), ()),
        slow(RunConfig.with_recipe(criterion="gaussian", **CURVE), ()),
        (ANN, STEERED),
        slow(replace(CNN, schedule="one-cycle"), STEERED),
        slow(replace(ANN, feed="dataloader"), STEERED),
    ],
)
def test_a_run_is_reproduced(
    config: RunConfig, rates: tuple[float, ...], tmp_path: Path
) -> None:
    controls, looks = [NO_CONTROL, *map(Control, rates)], count()
    watch = Watch(control=lambda: controls[min(len(rates), next(looks) // 4)])
    result = training.run(config, watch)
    assert [change.learning_rate for change in result.changes] == [*rates]
    script = export.script(result)
    out = run_alone(few(script) if config.has_images else script, tmp_path)
    assert out.splitlines()[-1].endswith(last_line(result))
    assert same_weights(tmp_path / "model.pt", result)


@pytest.mark.slow
@pytest.mark.real_data
def test_the_textbook_script_is_as_accurate_and_downloads_nothing(
    tmp_path: Path,
) -> None:
    result = training.run(RunConfig(feed="dataloader", epochs=1, device="cpu"))
    raw = tmp_path / "data/FashionMNIST/raw"
    raw.mkdir(parents=True)
    for name, content in fashion_mnist.files()[1].items():
        (raw / name).write_bytes(content)
    out = run_alone(export.script(result), tmp_path)
    assert out.splitlines()[-1].endswith(last_line(result))
    assert not list(raw.glob("*.gz"))


@pytest.mark.slow
@pytest.mark.real_data
def test_fashion_mnist_is_reproduced(tmp_path: Path) -> None:
    config = RunConfig(epochs=1, batch_size=128, device="cpu")
    result = training.run(config)
    script = export.script(result)
    assert 'DATA = "data"' in script
    script = script.replace('DATA = "data"', f'DATA = "{fashion_mnist.find()}"')
    out = run_alone(script, tmp_path)
    assert out.splitlines()[-1].endswith(last_line(result))


def cells(result: RunResult, kind: str) -> list[str]:
    content = json.loads(export.notebook(result))
    return ["".join(c["source"]) for c in content["cells"] if c["cell_type"] == kind]


def test_the_notebook_is_the_script(ann: RunResult, tmp_path: Path) -> None:
    out = run_alone(few("\n\n".join(cells(ann, "code"))), tmp_path)
    assert out.splitlines()[-1].endswith(last_line(ann))


CONFIGS = [
    ANN,
    CNN,
    FAST_CNN,
    RunConfig(),
    RunConfig.with_recipe(model="cnn"),
    RunConfig(feed="device"),
    RunConfig(feed="dataloader", num_workers=2, pin_memory=True, non_blocking=False),
    RunConfig.with_recipe(task="regression"),
    RunConfig.with_recipe(task="regression", criterion="gaussian"),
]


def every_config() -> Iterator[RunConfig]:
    """All that a script can differ by, beside numbers."""
    for task, *values in product(
        configs.TASKS, ("auto", "cpu"), configs.FEEDS, configs.SCHEDULES
    ):
        flips = (False, True) if task in configs.IMAGE_TASKS else (False,)
        for more in product(
            configs.MODELS_FOR[task], configs.CRITERIA_FOR[task], flips
        ):
            names = ("device", "feed", "schedule", "model", "criterion", "augment")
            settings = dict(zip(names, (*values, *more), strict=True))
            yield RunConfig(task=task, **settings)
    for model, feed in product(configs.FAST, configs.FEEDS):
        yield RunConfig.with_recipe(fast=True, model=model, feed=feed)


def test_scripts_are_short_and_stand_alone(ann: RunResult) -> None:
    environment = replace(ann.environment, device_name="A device with a long name " * 2)
    for config in every_config():
        result = replace(result_of(config, ann), environment=environment)
        text = export.script(result)
        compile(text, "script", "exec")
        assert max(map(len, text.splitlines())) <= 79
        assert "torch.manual_seed(SEED)" in export.heart(result)  # which a page shows
        imported = {*re.findall(r"^(?:from|import) (\w+)", text, re.M)}
        assert imported <= ALLOWED | {"sprites"}
        assert ("sprites" in imported) == (config.task == "sprites")
        most = 126 if config == RunConfig() else 168
        assert len(text.splitlines()) <= (215 if config.normalize else most)
    environment = replace(ann.environment, device_name="A processor")
    result = replace(ann, config=RunConfig(feed="dataloader"), environment=environment)
    text = export.script(result)
    assert len([line for line in text.splitlines() if line]) <= 80


@pytest.mark.parametrize("config", CONFIGS)
def test_a_notebook_is_one(ann: RunResult, config: RunConfig) -> None:
    content = json.loads(export.notebook(result_of(config, ann)))
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in content["cells"]:
        assert ("outputs" in cell) == (cell["cell_type"] == "code")
    code = cells(result_of(config, ann), "code")
    assert len(code) >= 8
    for cell in code:
        compile(cell, "cell", "exec")


@pytest.mark.parametrize("config", CONFIGS)
def test_the_command_gives_the_same_configuration(config: RunConfig) -> None:
    words = export.command(config).split()
    assert words[:3] == ["python", "-m", "core.run"]
    assert run.parse_arguments(words[3:]) == (config, False)
    recipe = RunConfig.with_recipe(task=config.task, model=config.model)
    assert ("--schedule" in words) == (config.schedule != recipe.schedule)
