import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from core import run
from core.config import FAST, RunConfig
from tests.process import python
from to_device.sim import simulation

ROOT = Path(__file__).parents[2]


# From the command line

SPRITES = ["--task", "sprites", "--epochs", "1", "--batch-size", "500"]
CURVE = ["--task", "regression", "--epochs", "1"]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def not_ended(monkeypatch):
    """A broken pipe must not end the process of the tests."""
    monkeypatch.setattr(run, "end_with_pipe", lambda: None)


def test_json_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([*SPRITES, "--json", "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    result = json.loads(line)
    assert result["config"]["seed"] == 3
    assert set(result["config"]) == {field.name for field in fields(RunConfig)}
    (epoch,) = result["history"]
    assert {"loss", "seconds", "samples_per_second"} <= set(epoch)
    assert result["test_accuracy"] == result["test_correct"] / result["test_total"]
    assert result["device"] == result["environment"]["device"]
    assert {"torch", "python", "threads", "device_name"} <= set(result["environment"])
    assert "epoch" in err


@pytest.mark.sim
def test_the_simulated_accelerator_ends_as_the_cpu_does_and_tells_no_times(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run.main([*SPRITES, "--device", "sim", "--json"]) == 0
    there, err = capsys.readouterr()
    assert " s  " not in err
    assert "samples/s" not in err
    assert run.main([*SPRITES, "--device", "cpu", "--json"]) == 0
    there, here = json.loads(there), json.loads(capsys.readouterr().out)
    assert there["test_accuracy"] == here["test_accuracy"]
    untimed = dict.fromkeys(
        ["seconds", "samples_per_second", "own_processors", "others_share"]
    )
    assert there["history"] == [epoch | untimed for epoch in here["history"]]
    assert there["seconds"] is None
    assert there["device"] == "sim"


@pytest.mark.parametrize("why", ["It is switched off.", "This process sees cuda."])
def test_without_the_simulated_accelerator_a_line_says_so(
    why: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "why_not", why)
    assert run.main([*SPRITES, "--device", "sim"]) == 1
    assert capsys.readouterr().err == f"python -m core.run: {why}\n"


def test_json_of_regression(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main([*CURVE, "--json"]) == 0
    out, err = capsys.readouterr()
    (line,) = out.splitlines()
    result = json.loads(line)
    assert (result["config"]["model"], result["config"]["criterion"]) == (
        "simple",
        "mse",
    )
    (epoch,) = result["history"]
    assert {"loss", "seconds", "samples_per_second"} <= set(epoch)
    assert (result["r2"], result["rmse"]) == (epoch["test_r2"], epoch["test_rmse"])
    assert "accuracy" not in line
    assert "correct" not in line
    assert "rmse" in err


NUMBER = r"-?\d\.\d{4}"


@pytest.mark.parametrize(
    ("arguments", "last_line"),
    [
        (SPRITES, r"test accuracy \d\d\.\d\d% \([\d,]+ of 2,000\)"),
        (
            [*CURVE, "--criterion", "gaussian"],
            rf"test r2 {NUMBER}, rmse {NUMBER} "
            rf"\(1,000 points, drawn with noise 0\.2\), learned noise {NUMBER}",
        ),
    ],
)
def test_words_without_json(
    arguments: list[str], last_line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run.main(arguments) == 0
    assert re.fullmatch(rf"{last_line}\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--epochs", "0"], "Epochs must"),
        (["--epochs", "x"], "epochs"),
        (["--epochs"], "epochs"),
        (["--lr", "nan"], "Learning rate"),
        (["--learning-rate", "-1"], "Learning rate"),
        (["--batch-size", "0"], "Batch size"),
        (["--weight-decay", "-1"], "Weight decay"),
        (["--model", "foo"], "Model must"),
        (["--task", "regression", "--model", "cnn"], "Model must"),
        (["--task", "regression", "--criterion", "cross-entropy"], "Criterion"),
        (["--task", "regression", "--augment", "true"], "Flip images"),
        (["--task", "sprites", "--criterion", "mse"], "Criterion"),
        (["--model", "simple"], "Model must"),
        (["--augment", "maybe"], "augment"),
        (["--task", "regression", "--fast"], "fast"),
        (["--color", "red"], "--color"),
        (["now"], "now"),
    ],
)
def test_bad_input_is_a_line(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run.main(arguments)
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert named in err


@pytest.mark.parametrize("model", FAST)
def test_fast_on_the_command_line(model: str) -> None:
    fast = RunConfig.with_recipe(fast=True, model=model)
    assert run.parse_arguments(["--fast", "--model", model]) == (fast, False)
    slower = ["--epochs", "40", "--fast", "--model", model, "--feed", "memory"]
    assert run.parse_arguments(slower)[0] == replace(fast, epochs=40, feed="memory")


def test_runs_as_a_module() -> None:
    done = python("-m", "core.run", "--help")
    settings = {field.name for field in fields(RunConfig)} - {"host"}  # it is this one
    for name in ("fast", *settings):
        assert f"--{name.replace('_', '-')}" in done.stdout
