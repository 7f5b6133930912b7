from math import log, pi

import pytest
import torch
from torch import Tensor, nn

from core import loops, loss_functions
from core.data import curve, datasets
from core.devices import other_than_cpu
from core.loss_functions import GaussianLoss

CPU = torch.device("cpu")


@pytest.fixture
def numbers() -> tuple[Tensor, Tensor]:
    """Outputs and targets: two times float32 (50, 1)."""
    dice = torch.Generator().manual_seed(0)
    return torch.randn(50, 1, generator=dice), torch.randn(50, 1, generator=dice)


def of_scale(sigma: float) -> GaussianLoss:
    criterion = GaussianLoss()
    nn.init.constant_(criterion.log_sigma, log(sigma))
    return criterion


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_the_loss_is_torchs_own(sigma: float, numbers: tuple[Tensor, Tensor]) -> None:
    outputs, targets = numbers
    ours = of_scale(sigma)(outputs, targets).item()
    variance = torch.full_like(outputs, sigma**2)
    theirs = nn.GaussianNLLLoss()(outputs, targets, variance).item()
    full = nn.GaussianNLLLoss(full=True)(outputs, targets, variance).item()
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert ours + log(2 * pi) / 2 == pytest.approx(full, rel=1e-5)


def test_smoothing_gives_each_class_its_part_of_the_target() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5]])
    target = torch.tensor([[0.9 + 0.1 / 3, 0.1 / 3, 0.1 / 3]])
    expected = -(target * logits.log_softmax(dim=1)).sum()
    loss = loss_functions.build("cross-entropy", 0.1)(logits, torch.tensor([0]))
    assert loss.item() == pytest.approx(expected.item())


def train(criterion: nn.Module, parameters: list[nn.Parameter]) -> None:
    """Some epochs with the true curve for a model, so that only sigma is to learn."""
    split = datasets.load("regression").train
    outputs = torch.tensor([curve.f(x) for x in split.images.flatten().tolist()])
    batch = [(outputs.view(-1, 1), split.labels)]
    optimizer = torch.optim.AdamW(parameters, lr=0.05, weight_decay=0.0)
    model = nn.Identity()
    for _ in loops.train_epoch(model, batch * 200, criterion, optimizer, CPU):
        pass


def test_the_scale_is_learned() -> None:
    criterion = GaussianLoss()
    train(criterion, list(criterion.parameters()))
    assert loss_functions.learned_noise(criterion) == pytest.approx(
        curve.NOISE, rel=0.03
    )


@pytest.mark.parametrize(
    "device",
    [
        torch.device("meta"),
        pytest.param(other_than_cpu(), marks=pytest.mark.gpu),
    ],
)
def test_the_move_must_not_be_forgotten(
    device: torch.device, numbers: tuple[Tensor, Tensor]
) -> None:
    outputs, targets = (tensor.to(device) for tensor in numbers)
    with pytest.raises(RuntimeError, match="device"):
        GaussianLoss()(outputs, targets)
    moved = GaussianLoss().to(device)
    loss = moved(outputs, targets)
    assert loss.device.type == device.type
    assert loss.shape == ()
