import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun.report import OK, Report

pytestmark = pytest.mark.usefixtures("unhurried")

# A training whose tenth line is another one each time
TRAINING = """
import torch
net = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(net.parameters())
offsets = torch.arange(4.0).numpy()
for step in range(6):
    optimizer.zero_grad()
    x = torch.rand(3, 4).cuda()
    labels = torch.randint(2, (3,), device="cuda")
    {line}
    net(x).sum().backward()
    optimizer.step()
"""


def training(line: str) -> Report:
    report = dry_run(TRAINING.format(line=line))
    assert report.status == OK, report.failure
    return report


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("y = torch.ones(4).cuda(); x = x + y", True),
        ("y = torch.ones(4).cuda(); y[1:] += x[0, 1:]", False),
        ("y = torch.ones(4).cuda(); y.view(2, 2).relu_()", False),
        ("x = x + x.new_tensor(offsets)", True),
        ("x = x + torch.as_tensor(offsets, device='cuda')", True),
        ("x = x + torch.tensor(offsets + step, device='cuda')", False),
        ("y = torch.tensor(offsets, device='cuda'); y.add_(x[0])", False),
    ],
)
def test_a_copy_to_make_once_is_the_same_and_stays_so(line: str, same: bool) -> None:
    copies = {copy.line.number: copy for copy in training(line).copies}
    assert copies[10].bytes == 16
    assert copies[10].same == same


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("x[labels[0]]", "[index]"),
        ("x[labels[0]] = 1.0", "[index] ="),
        ("x[x > 0.5]", "[mask]"),
    ],
)
def test_an_index_on_the_device_is_no_mask(line: str, cause: str) -> None:
    waits = [wait.cause for wait in training(line).waits if wait.line.number == 10]
    assert waits == [cause]
