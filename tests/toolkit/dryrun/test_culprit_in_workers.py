import pytest

from tests.toolkit.dryrun.dry_run import LAYER, MODEL
from to_device.dryrun import command
from to_device.dryrun.report import Request

pytestmark = pytest.mark.usefixtures("unhurried")

IN_WORKERS = [  # what uses a loader with a worker, and the line to change
    (
        "loader = torch.utils.data.DataLoader([*x], num_workers=1, pin_memory=True)\n"
        "net.cuda()\nfor batch in loader:\n    net(batch)",
        16,
    ),
    (
        "class Data(torch.utils.data.Dataset):\n"
        "    def __init__(self):\n        self.drawn = torch.Generator('cuda')\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return torch.rand(4, generator=self.drawn)\n"
        "for batch in torch.utils.data.DataLoader(Data(), num_workers=1): net(batch)",
        16,
    ),
    (  # the data set's tensors are on the device
        "x = x.cuda()\ndata = torch.utils.data.TensorDataset(x)\n"
        "for batch in torch.utils.data.DataLoader(data, num_workers=1): net(*batch)",
        14,
    ),
    (  # a later loader's batches stay on the CPU
        "net.cuda()\ndef score(loader):\n    for batch in loader:\n"
        "        net(batch)\n"
        "def moved(rows): return torch.stack(rows).cuda()\n"
        "score(torch.utils.data.DataLoader([*x], collate_fn=moved))\n"
        "score(torch.utils.data.DataLoader([*x], collate_fn=torch.stack))",
        20,
    ),
]


@pytest.mark.parametrize(("rest", "culprit"), IN_WORKERS)
def test_what_a_worker_makes(rest: str, culprit: int) -> None:
    """No function of the script's process makes it, and a thread may pin it."""
    text = MODEL.format(forward=LAYER, rest=rest)
    report = command.dry_run(Request("script.py", text))
    assert report["failure"]["culprit"]["line"] == culprit
