from pathlib import Path

import numpy as np
import pytest
import torch

from core import models, state_dict
from core.config import RunConfig
from core.data import datasets
from core.lessons.evaluate import evaluation
from core.lessons.evaluate.evaluate_result import Evaluation
from core.results import RunResult
from core.training import run
from to_device.errors import ExplainedError

ROOT = Path(__file__).parents[4]
CONFIG = RunConfig(task="sprites", epochs=1, batch_size=500)

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def result() -> RunResult:
    """A run that gets some images wrong."""
    return run(CONFIG)


@pytest.fixture(scope="module")
def answers(result: RunResult) -> Evaluation:
    """What that model answers to all test images."""
    return evaluation.evaluate(result.checkpoint, CONFIG)


def test_answers_are_those_of_the_run_in_file_order(
    result: RunResult, answers: Evaluation
) -> None:
    assert (answers.correct, answers.total) == (result.test_correct, result.test_total)
    assert 0 < answers.correct < answers.total
    assert list(answers.targets) == datasets.load("sprites").test.labels.tolist()
    sure = np.array(answers.confidences)
    right = np.array(answers.targets) == np.array(answers.predictions)
    assert right.sum() == answers.correct
    assert sure.min() > 0.1
    assert sure.max() <= 1
    assert sure[right].mean() > sure[~right].mean()


@pytest.mark.parametrize("indices", [(), (5,), (7, 3, 7)])
def test_images_by_number(indices: tuple[int, ...]) -> None:
    images, labels = evaluation.images("sprites", indices)
    assert isinstance(images, np.ndarray)
    assert images.dtype == np.uint8
    assert images.shape == (len(indices), 28, 28)
    test = datasets.load("sprites").test
    for image, label, index in zip(images, labels, indices, strict=True):
        assert np.array_equal(image, test.images[index, 0])
        assert label == test.labels[index]


def test_three_modes_are_compared(result: RunResult) -> None:
    costs = evaluation.compare_modes(result.checkpoint, CONFIG)
    modes = ["gradients", "no_grad", "inference_mode"]
    assert [cost.mode for cost in costs] == modes * 2
    assert [cost.model for cost in costs] == ["ann"] * 3 + ["cnn"] * 3
    assert all(len(cost.seconds) == 5 for cost in costs)
    assert len({cost.images for cost in costs}) == 1
    recorded, *others = [cost.peak_bytes for cost in costs if cost.model == "cnn"]
    for other in others:
        assert (recorded is None) == (other is None)
        assert recorded is None or other is None or recorded > 1.2 * other


@pytest.mark.sim
def test_only_gradients_keep_memory_after_a_forward_pass() -> None:
    sizes = evaluation.forward_memory("sim")
    assert sizes == evaluation.forward_memory("sim")
    outputs = 64 * 10 * 4  # bytes
    assert sizes.pop("gradients") > outputs
    assert set(sizes.values()) == {outputs}


def test_probabilities_are_those_of_the_evaluation(result, answers) -> None:
    for index in (0, 7):
        (pixels,), labels = evaluation.images(result.config.task, (index,))
        values = evaluation.probabilities(result.checkpoint, result.config, pixels)
        assert sum(values) == pytest.approx(1, abs=1e-5)
        assert values.index(max(values)) == answers.predictions[index]
        assert max(values) == pytest.approx(answers.confidences[index], abs=1e-5)
        assert labels == (answers.targets[index],)


def test_a_model_that_answers_no_numbers_is_not_judged() -> None:
    model = models.build("ann")
    with torch.no_grad():
        for weights in model.parameters():
            weights.fill_(3e38)
    checkpoint = state_dict.save(model)
    pixels = np.full((28, 28), 255, np.uint8)
    with pytest.raises(ExplainedError, match=r"\b2,000 of 2,000\b"):
        evaluation.evaluate(checkpoint, CONFIG)
    with pytest.raises(ExplainedError, match=r"\b1 of 1\b"):
        evaluation.probabilities(checkpoint, CONFIG, pixels)
