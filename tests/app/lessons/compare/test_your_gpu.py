import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from core import models, state_dict
from core.lessons.compare import your_gpu
from core.lessons.compare.your_gpu_result import (
    SIZES,
    BrowserGpu,
    Work,
    literal,
    read,
)
from core.store import codec
from tests.app.samples import BROWSER_GPU, PROCESSOR

TURNS = [1e-3] * 7
PRODUCT = {"kind": "product", "size": 64, "gpu": TURNS, "cpu": [2e-3] * 7}
FORWARD = {"kind": "forward", "size": 1, "gpu": TURNS, "cpu": []}
RESULT = {
    "name": "nvidia ampere",
    "kind": "computer",
    "works": [PRODUCT, FORWARD],
    "left_out": [["product", 2048, "slow"]],
    "losses": [1.0] * 100,
    "clocked": 64,
    "paces": [1e3] * 15,
    **dict.fromkeys(("unwaited", "waited", "there", "back"), TURNS),
}
FACTS = {
    "environment": PROCESSOR,
    "against": "torch",
    "expected": [1.0] * 100,
    "own_weights": False,
}


def unpacked(text: str, kind: type = np.float32) -> torch.Tensor:
    return torch.tensor(np.frombuffer(zlib.decompress(base64.b64decode(text)), kind))


def test_the_formula_draws_numbers_of_both_signs():
    for factor in your_gpu.FACTORS:
        numbers = your_gpu.random(100, factor)
        assert -0.5 <= numbers.min() < -0.49
        assert 0.49 < numbers.max() <= 0.5
        assert abs(numbers.mean()) < 0.02


def test_the_answers_are_those_of_the_weights_that_are_sent():
    sent = your_gpu.prepare("sprites")
    model = models.ANN()
    own = your_gpu.with_weights(state_dict.save(model), "sprites")
    assert own["parameters"] == your_gpu.parameters(model) != sent["parameters"]
    assert_logits(sent)
    assert_logits(sent | own)
    assert len(sent["losses"]) == 100
    assert sent["losses"][-1] < sent["losses"][0] / 2


def assert_logits(sent: dict) -> None:
    model, parameters = models.ANN(), unpacked(sent["parameters"])
    with torch.no_grad():
        for parameter in model.parameters():
            own, parameters = parameters.split(
                (parameter.numel(), len(parameters) - parameter.numel())
            )
            parameter.copy_(own.view(parameter.t().shape).t())
    images = unpacked(sent["images"], np.uint8).view(-1, 1, 28, 28)
    logits = unpacked(sent["logits"]).view(-1, 10)
    assert torch.allclose(model(images), logits, atol=1e-5)


def test_every_piece_of_work_is_timed():
    works = [("product", 64), ("forward", 10), ("step", 64)]
    seconds, environment = your_gpu.measure(works)
    assert all(reading > 0 for reading in seconds)
    assert environment.backend == "CPU"


def test_a_browsers_report_becomes_a_result():
    gpu = read(RESULT, **FACTS)
    assert gpu.crossover == 64
    assert gpu.works[0].speedup.ratio == 2
    assert [work.note for work in gpu.works] == ["", "alone"]
    assert codec.loads(codec.dumps(gpu), "It") == gpu


@pytest.mark.parametrize(
    "lie",
    [
        {"kind": "<b>fast</b>"},
        {"works": [PRODUCT | {"size": 65}, FORWARD]},
        {"works": [PRODUCT | {"gpu": [float("nan")] * 7}, FORWARD]},
        {"works": [PRODUCT | {"gpu": [-1.0] * 7}, FORWARD]},
        {"works": [PRODUCT | {"gpu": [1e-15] * 7}, FORWARD]},
        {"works": [PRODUCT | {"gpu": [1.0] * 1000, "cpu": []}, FORWARD]},
        {"works": [PRODUCT | {"cpu": [1.0] * 6}, FORWARD]},
        {"works": [PRODUCT | {"gpu": [], "cpu": []}, FORWARD]},
        {"works": [PRODUCT]},
        {"works": RESULT["works"] * 2},
        {"works": 5},
        {"losses": [1.0] * 99},
        {"paces": [1e30] * 15},
        {"paces": [1.0] * 16},
        {"left_out": [["product", 64, "slow"]]},
        {"left_out": [["<b>", 64, "slow"]]},
        {"waited": []},
        {"there": None},
    ],
)
def test_what_no_gpu_can_have_done_is_refused(lie):
    with pytest.raises(ValueError, match="browser"):
        read(RESULT | lie, **FACTS)


def test_a_name_is_a_short_line():
    assert literal("nvidia  \n ampere\x00\u202e") == "nvidia ampere"
    assert len(literal("x" * 1000)) == 60
    assert literal("") == "a GPU without a name"


def products(*works: tuple[tuple[float, ...], tuple[float, ...]]) -> BrowserGpu:
    """A browser's GPU with these times of products, on both sides."""
    sized = zip(SIZES, works, strict=False)
    works = tuple(Work("product", size, *sides) for size, sides in sized)
    return replace(BROWSER_GPU, works=works)


WON, LOST, TIED = ((1.0,) * 7, (2.0,) * 7), ((2.0,) * 7, (1.0,) * 7), ((1.0,) * 7,) * 2


@pytest.mark.parametrize(
    ("works", "outcome", "crossover"),
    [
        ((WON, WON), "everywhere", 64),
        ((LOST, WON, WON), "above", 128),
        ((TIED, WON), "above", 128),
        ((LOST, LOST), "nowhere", None),
        ((TIED, TIED), "unclear", None),
        ((LOST, TIED), "unclear", None),
        ((LOST, WON, TIED), "unclear", None),  # a win has to last to the largest size
        ((WON, LOST), "unclear", None),
        (((WON[0], ()),), "alone", None),
    ],
)
def test_a_gpu_wins_everywhere_above_a_size_or_nowhere(works, outcome, crossover):
    gpu = products(*works)
    assert (gpu.outcome, gpu.crossover) == (outcome, crossover)
