"""What torch sends a browser's GPU, and what is believed of what comes back."""

import base64
import zlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from core import models
from core.lessons.compare import your_gpu
from core.lessons.compare.your_gpu_result import BrowserGpu, literal, read
from core.store import codec
from tests.samples import BROWSER_GPU, PROCESSOR

PRODUCT = {"kind": "product", "size": 64, "gpu": [1e-3] * 7, "cpu": [2e-3] * 7}
FORWARD = {"kind": "forward", "size": 1, "gpu": [1e-3] * 7, "cpu": []}
SAID = {
    "id": "run",
    "name": "nvidia ampere",
    "kind": "computer",
    "works": [PRODUCT, FORWARD],
    "left_out": [["product", 2048, "slow"]],
    "losses": [1.0] * 100,
    "clocked": 64,
    "paces": [1e3],
    **{name: [1e-3] * 7 for name in ("unwaited", "waited", "there", "back")},
}
KNOWN = {
    "environment": PROCESSOR,
    "against": "torch",
    "expected": [1.0] * 100,
    "own_weights": False,
}


def unpacked(text: str, kind: type = np.float32) -> torch.Tensor:
    return torch.tensor(np.frombuffer(zlib.decompress(base64.b64decode(text)), kind))


def test_the_formula_draws_numbers_of_both_signs():
    numbers = your_gpu.random(100, your_gpu.FACTORS[0])
    assert -0.5 <= numbers.min() < -0.49
    assert 0.49 < numbers.max() <= 0.5
    assert abs(numbers.mean()) < 0.02


def test_the_answers_are_those_of_the_weights_that_are_sent():
    sent = your_gpu.prepare(None, "sprites")
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
    assert len(sent["losses"]) == 100
    assert sent["losses"][-1] < sent["losses"][0] / 2


def test_every_piece_of_work_is_timed():
    works = [("product", 64), ("forward", 10), ("step", 64)]
    seconds, environment = your_gpu.measure(works)
    assert all(reading > 0 for reading in seconds)
    assert environment.backend == "CPU"


def test_what_a_browser_says_is_read_and_kept():
    gpu = read(SAID, **KNOWN)
    assert gpu.crossover == 64
    assert gpu.works[0].speedup.ratio == 2
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
        {"works": [PRODUCT]},
        {"works": SAID["works"] * 2},
        {"works": 5},
        {"losses": [1.0] * 99},
        {"paces": [1e30]},
        {"waited": []},
        {"there": None},
    ],
)
def test_what_no_gpu_can_have_done_is_refused(lie):
    with pytest.raises(ValueError, match="browser"):
        read(SAID | lie, **KNOWN)


def test_a_name_is_a_short_line():
    assert literal("nvidia  \n ampere\x00\u202e") == "nvidia ampere"
    assert len(literal("x" * 1000)) == 60
    assert literal("") == "a GPU without a name"


def test_a_win_has_to_last_to_the_largest_size():
    works = list(BROWSER_GPU.works)
    assert BROWSER_GPU.crossover == 256
    works[5] = replace(works[5], gpu=works[5].cpu)  # too close to call
    gpu: BrowserGpu = replace(BROWSER_GPU, works=tuple(works))
    assert gpu.crossover is None
