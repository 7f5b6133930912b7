from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.config import RunConfig
from core.devices import other_than_cpu
from core.errors import CancelledError
from core.lessons.checkpoints import resume
from core.lessons.checkpoints.checkpoints_result import PartLosses, Resumed
from core.training import Training
from core.watch import Watch

pytestmark = pytest.mark.usefixtures("one_thread", "few_images")

IMAGES = 600

ANN = RunConfig(task="sprites", epochs=2, batch_size=32, device="cpu", augment=True)
CNN = replace(ANN, model="cnn", batch_size=200, schedule="one-cycle", weight_decay=0.05)

FAST = RunConfig.with_recipe(fast=True, task="sprites", model="cnn", device="cpu")
FAST = replace(FAST, epochs=2, batch_size=200)


@pytest.fixture(scope="module")
def few_images() -> Iterator[None]:
    """An epoch of 19 steps for the ANN, and of 3 for the CNN."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume, "RESUME_IMAGES", IMAGES)
        yield


@pytest.fixture(scope="module", params=[ANN, CNN, FAST], ids=["ann", "cnn", "fast"])
def compared(
    few_images: None,  # noqa: ARG001
    request: pytest.FixtureRequest,
) -> tuple[Resumed, list[PartLosses]]:
    reports: list[PartLosses] = []
    return resume.compare(request.param, Watch(reports.append)), reports


def losses(reports: list[PartLosses], part: str) -> dict[int, float]:
    return {step: loss for r in reports if r.part == part for step, loss in r.losses}


def test_on_the_cpu_resumed_is_trained_through_bit_for_bit(compared: Any) -> None:
    resumed, reports = compared
    assert resumed.greatest_loss_difference == 0.0
    assert resumed.differing_weights == 0
    assert losses(reports, "resumed") == losses(reports, "through")
    assert list(losses(reports, "through")) == list(range(1, resumed.steps + 1))


def test_weights_alone_are_not_enough(compared: Any) -> None:
    resumed, reports = compared
    rest = range(resumed.at_step + 1, resumed.steps + 1)
    assert resumed.weights_only_difference > 1e-3
    assert list(losses(reports, "weights")) == list(rest)


@pytest.mark.parametrize("forgotten", ["optimizer", "order", "random", "scheduler"])
def test_each_part_of_the_checkpoint_is_needed(
    forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Training.load_state_dict

    def forgetful(self: Training, state: dict[str, Any]) -> None:
        load(self, {**state, forgotten: self.state_dict()[forgotten]})

    monkeypatch.setattr(Training, "load_state_dict", forgetful)
    assert resume.compare(CNN).greatest_loss_difference > 0


def test_resuming_is_cancelled() -> None:
    answers = iter([False] * 59 + [True])
    with pytest.raises(CancelledError):
        resume.compare(ANN, watch=Watch(cancelled=answers.__next__))
    assert next(answers, None) is None


@pytest.mark.gpu
def test_resuming_on_the_accelerator() -> None:
    resumed = resume.compare(replace(CNN, device=other_than_cpu().type))
    assert resumed.greatest_loss_difference < resumed.weights_only_difference
    assert resumed.greatest_loss_difference < 0.05
    assert "device_random" in resumed.contents
