"""Faults in functions that have returned, some of them in a file of their own."""

from pathlib import Path

import pytest

from tests.toolkit.dryrun.dry_run import LAYER, MODEL, dry_run
from to_device.dryrun.report import DEVICE_ERROR

pytestmark = pytest.mark.usefixtures("unhurried")

HELPERS = [  # a file with functions, what uses them, the line to change, and its file
    (  # nothing tells the function the device
        "def vectors():\n    return torch.eye(4)\ndef matrix():\n"
        "    return vectors().view(1, 4, 4)",
        "def use(y):\n    k = helpers.matrix()\n    return k @ y\nuse(x.cuda().T)",
        ("script.py", 16),
    ),
    (
        "def rows():\n    return [torch.ones(4) for _ in range(2)]",
        "print(helpers.rows()[1] + x.cuda())",
        ("script.py", 15),
    ),
    (  # it may ask for the device
        "def vectors():\n    return torch.eye(4)\ndevice = torch.device(0)",
        "print(helpers.vectors() @ x.cuda().T)",
        ("helpers.py", 3),
    ),
    (
        "def vectors(like):\n    return torch.eye(4)",
        "y = x.cuda()\nprint(helpers.vectors(y) @ y.T)",
        ("helpers.py", 3),
    ),
    (  # its file knows no device, and the caller moves what another function makes
        "def some(n):\n    return torch.rand(n, 4)\n"
        "def waves(n):\n    return torch.ones(n, 4)",
        "net.cuda()\nnet(helpers.some(2).cuda())\nk = helpers.waves(2)\nnet(k)",
        ("script.py", 17),
    ),
    (  # a function that moves what it is given moves it for its caller
        "def moved(x):\n    return x.cuda()",
        "def some():\n    y = torch.ones(2, 4), torch.ones(2, 4)\n    return y\n"
        "y, z = some()\ny = helpers.moved(y)\nprint(y + z)",
        ("script.py", 19),
    ),
    (  # a line that may pass a tensor on doesn't make it
        "def parts(batch):\n    return batch['x'], batch['y'].view(-1)",
        "data = [{'x': torch.ones(4), 'y': torch.ones(1)}]\n"
        "for batch in torch.utils.data.DataLoader(data):\n"
        "    x, y = helpers.parts(batch)\n    x = x.cuda()\n"
        "    y, n = (x, 1) if y is None else (y, 0)\n    print(x * y + n)",
        ("script.py", 17),
    ),
    (  # it joins the tensor that it gets to one of its own
        "def grid(anchors):\n    at = torch.arange(4.).view(1, 4)\n"
        "    return torch.cat([at, anchors]).exp()",
        "anchors = torch.ones(1, 4)\ny = x.cuda()\nall = helpers.grid(anchors)\n"
        "all = all.view(2, 4)\nprint(all - y)",
        ("script.py", 17),
    ),
    (  # it mixes what it computed from several tensors of its own
        "def sample(n):\n    noise = torch.randn(n, 4)\n"
        "    centers = torch.eye(4)[:n]\n    return 0.5 * noise + centers * 2",
        "net.cuda()\nsome = helpers.sample(2)\nnet(some)",
        ("script.py", 16),
    ),
    (  # one tensor and its own results mix nothing
        "def waves(n):\n    at = torch.rand(n, 2)\n"
        "    return torch.cat([at.sin(), at.cos()], 1)",
        "net.cuda()\nsome = helpers.waves(2)\nnet(some)",
        ("helpers.py", 3),
    ),
    (  # all its tensors come from outside
        "def grid(at, anchors):\n    return torch.cat([at, anchors]).exp()",
        "one, y = torch.ones(1, 4), x.cuda()\nall = helpers.grid(one, one)\n"
        "print(all - y)",
        ("script.py", 15),
    ),
    (  # a number meets tensors anywhere
        "def grid(anchors):\n    return anchors * torch.tensor(2.)",
        "anchors = torch.ones(4)\ny = x.cuda()\nall = helpers.grid(anchors)\n"
        "print(all - y)",
        ("script.py", 15),
    ),
    (  # it keeps the tensor
        "class Grid:\n    def __init__(self, anchors):\n"
        "        joined = torch.cat([torch.zeros(1, 4), anchors])\n"
        "        self.all = joined",
        "anchors = torch.ones(1, 4)\ngrid = helpers.Grid(anchors)\n"
        "print(grid.all - x.cuda())",
        ("script.py", 15),
    ),
    (  # what an object keeps has met others there, so it's moved where it's used
        "class Data:\n    def __init__(self):\n"
        "        self.rows = torch.ones(8, 4)\n        self.scale = torch.ones(4)\n"
        "        self.mean = (self.rows * self.scale.expand(8, 4)).mean()",
        "data = helpers.Data()\ny = net.cuda()(x.cuda())\n"
        "scale = data.scale.expand(2, 4)\nprint(y * scale)",
        ("script.py", 17),
    ),
]


@pytest.mark.parametrize(("helpers", "rest", "culprit"), HELPERS)
def test_who_moves_what_a_function_returned(
    tmp_path: Path, helpers: str, rest: str, culprit: tuple[str, int]
) -> None:
    (tmp_path / "helpers.py").write_text(f"import torch\n{helpers}\n")
    text = MODEL.format(forward=LAYER, rest=f"import helpers\n{rest}")
    report = dry_run(text, str(tmp_path / "script.py"))
    assert report.status == DEVICE_ERROR, report.failure
    assert report.failure
    assert report.failure.culprit
    place = report.failure.culprit
    assert (Path(place.file).name, place.number) == culprit
