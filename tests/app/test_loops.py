import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from core import loops, models
from core.devices import other_than_cpu

CPU = torch.device("cpu")
HERE = pytest.mark.parametrize(
    "device", [CPU, pytest.param(other_than_cpu(), marks=pytest.mark.gpu)]
)

Batch = tuple[Tensor, Tensor]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def seed() -> None:
    """The same weights and images in every test."""
    torch.manual_seed(0)


@pytest.fixture
def batch() -> Batch:
    """Noise with labels: uint8 (20, 1, 28, 28), int64 (20,)."""
    return torch.randint(256, (20, 1, 28, 28)).byte(), torch.randint(10, (20,))


def fickle() -> nn.Module:
    """A model that answers otherwise while it trains."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 30), nn.BatchNorm1d(30), nn.Dropout(), nn.ReLU()
    )


def test_parameters_move_as_sgd_says(batch: Batch) -> None:
    model = models.build("ann")
    expected = copy.deepcopy(model)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)  # left over from before
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    list(loops.train_epoch(model, [batch], criterion, sgd, CPU))

    criterion(expected(batch[0]), batch[1]).backward()
    for moved, parameter in zip(model.parameters(), expected.parameters(), strict=True):
        assert parameter.grad is not None
        assert torch.allclose(moved, parameter - 0.1 * parameter.grad, atol=1e-7)


@HERE
def test_loss_is_that_before_the_step(device: torch.device, batch: Batch) -> None:
    model = models.build("ann").to(device)
    criterion = nn.CrossEntropyLoss()
    with torch.no_grad():
        expected = criterion(model(batch[0].to(device)), batch[1].to(device))
    adam = torch.optim.Adam(model.parameters())
    (loss,) = loops.train_epoch(model, [batch], criterion, adam, device)
    assert torch.equal(loss, expected)
    assert loss.device.type == device.type
    assert not loss.requires_grad
    assert loss.grad_fn is None


def test_each_step_is_watched(batch: Batch) -> None:
    model = models.build("ann")
    adam = torch.optim.Adam(model.parameters())
    numbers: list[int] = []

    def batches() -> Iterator[Batch]:
        for number in range(3):
            numbers.append(number)
            yield batch

    steps = loops.train_epoch(model, batches(), nn.CrossEntropyLoss(), adam, CPU)
    for number, _ in enumerate(steps):
        assert numbers == list(range(number + 1))
    assert len(numbers) == 3


def test_schedule_goes_on_with_each_step(batch: Batch) -> None:
    model = models.build("ann")
    sgd = torch.optim.SGD(model.parameters(), lr=1.0)
    halved = torch.optim.lr_scheduler.ExponentialLR(sgd, gamma=0.5)
    criterion = nn.CrossEntropyLoss()
    list(loops.train_epoch(model, [batch] * 3, criterion, sgd, CPU, halved))
    assert halved.get_last_lr() == [0.125]


def test_training_mode_comes_back(batch: Batch) -> None:
    model = fickle()
    adam = torch.optim.Adam(model.parameters())
    batch = batch[0].float(), batch[1]
    loops.predict(model, [batch], CPU)
    assert not any(module.training for module in model.modules())
    list(loops.train_epoch(model, [batch], nn.CrossEntropyLoss(), adam, CPU))
    assert all(module.training for module in model.modules())


@HERE
def test_predictions_are_in_order(device: torch.device, batch: Batch) -> None:
    images, labels = batch
    model = models.build("ann").to(device)
    parts = list(zip(images.split(7), labels.split(7), strict=True))
    outputs, targets = loops.predict(model, parts, device)
    whole, _ = loops.predict(model, [batch], device)
    assert outputs.device.type == targets.device.type == device.type
    assert torch.allclose(outputs, whole, atol=1e-5)
    assert torch.equal(targets.cpu(), labels)


def test_score_by_hand() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    score = loops.score(logits, torch.tensor([0, 1, 1]), nn.CrossEntropyLoss())
    assert (score.correct, score.total) == (2, 3)
    assert score.accuracy == pytest.approx(2 / 3)
    assert score.loss == pytest.approx((0.126928 + 0.313262 + 3.048587) / 3, abs=1e-5)


def test_regression_score_by_hand() -> None:
    targets = torch.tensor([[0.0], [2.0], [4.0]])
    outputs = targets + torch.tensor([[1.0], [0.0], [-2.0]])
    score = loops.score_regression(outputs, targets, nn.L1Loss())
    assert score.r2 == pytest.approx(1 - 5 / 8)
    assert score.rmse == pytest.approx((5 / 3) ** 0.5)
    assert (score.loss, score.total) == (pytest.approx(1.0), 3)
