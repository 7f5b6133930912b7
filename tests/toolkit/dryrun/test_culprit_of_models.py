import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun.report import DEVICE_ERROR

pytestmark = pytest.mark.usefixtures("unhurried")

# A model whose layers are in a plain list, which begins in line 6
IN_A_LIST = """
import torch
class Net(torch.nn.Module):
    def __init__({self}):
        super().__init__()
        {kept}
        for _ in range(2):
            {added}
    def forward({self}, x):
        for layer in {layers}:
            x = layer(x)
        return x
net = Net().cuda()
net(torch.rand(2, 4).cuda())
"""
LAYER = "torch.nn.Linear(4, 4)"


@pytest.mark.parametrize(
    ("self", "kept", "added", "layers"),
    [
        ("self", "self.layers = []", f"self.layers.append({LAYER})", "self.layers"),
        ("net", "net.layers: list = list()", f"net.layers += [{LAYER}]", "net.layers"),
        (
            "self",
            "self.layers = {}",
            f"self.layers[_] = torch.nn.Sequential({LAYER})",
            "self.layers.values()",
        ),
        ("m", f"m.layers = [{LAYER}, {LAYER}]", "pass", "m.layers"),
    ],
)
def test_layers_in_a_plain_list_are_told_where_the_list_begins(
    self: str, kept: str, added: str, layers: str
) -> None:
    report = dry_run(IN_A_LIST.format(self=self, kept=kept, added=added, layers=layers))
    assert report.status == DEVICE_ERROR
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == 6
    assert "nn.ModuleList" in report.failure.why


def test_a_list_that_begins_with_layers_is_told_where_others_are_added() -> None:
    kept, added = f"self.layers = [{LAYER}.cuda()]", f"self.layers.append({LAYER})"
    report = dry_run(
        IN_A_LIST.format(self="self", kept=kept, added=added, layers="self.layers")
    )
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == 8


def test_what_a_model_holds_has_its_name_and_its_own_line() -> None:
    report = dry_run("""
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.zeros(4))
                self.scale = torch.ones(4)
            def forward(self, x):
                return torch.addcmul(x, self.mean, self.scale)
        net = Net().cuda()
        net(torch.rand(2, 4).cuda())
    """)
    assert report.failure
    told = {(a.name, a.line and a.line.number) for a in report.failure.arguments}
    assert {("net.mean", 10), ("net.scale", 7)} <= told


@pytest.mark.parametrize("first", ["average = Average(net)", "net.cuda()"])
def test_an_explicit_copy_to_the_cpu_is_told_also_before_the_move(first: str) -> None:
    report = dry_run(f"""
        import torch
        class Average:
            def __init__(self, net):
                self.kept = [p.detach().cpu().clone() for p in net.parameters()]
        net = torch.nn.Linear(4, 4)
        {first}
        net.cuda()
        average = locals().get("average") or Average(net)
        with torch.no_grad():
            average.kept[0] * 0.9 + net.weight
    """)
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == 5
    assert "move the model first" not in report.failure.why


@pytest.mark.parametrize(
    ("made", "may"),
    [
        ("torch.FloatTensor(np.ones(4))", False),
        ("torch.Tensor(2, 4)", False),
        ("torch.Tensor(torch.ones(4))", True),
        ("torch.tensor(np.ones(4), dtype=torch.float)", True),
    ],
)
def test_device_is_told_of_functions_that_take_one(made: str, may: bool) -> None:
    report = dry_run(f"""
        import numpy as np
        import torch
        x = {made}
        x * torch.rand(2, 4).cuda()
    """)
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == 4
    assert ("device=" in report.failure.why) == may
