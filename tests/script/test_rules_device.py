"""Each rule on a script with its mistake, and without."""

import io

import pytest
import torch
from torch import nn

from core.script.check import check
from tests.script.right import changed, lines, slugs

MADE = "model = Net()\n"
ASKED = "model = build()\nSGD(model.parameters())\n"
REFUSED = [("pickle_refused", "sure")]


def found(text: str) -> list[str]:
    return [finding.slug for finding in check(text).findings]


def test_the_right_script_is_not_blamed():
    assert changed() == []


def test_a_checkpoint_that_is_loaded_where_it_was_is_pointed_at():
    assert slugs(", map_location=device -> ") == [("cuda_checkpoint", "look")]
    assert found('a = torch.load(f, "cpu")\nb = torch.load(f, **kwargs)') == []
    (both,) = check("a = torch.load(f)\nb = torch.load(g)").findings
    assert "2 times" in both.say


def test_cuda_in_the_script_is_pointed_at():
    assert slugs("model.to(device) -> model.cuda()") == [("cuda_hard_coded", "look")]
    asked = "if torch.cuda.is_available():\n    x = x.cuda()\n"
    chosen = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    assert found(asked) == found(chosen) == []
    for line in (
        'device = torch.device("cuda:0")',
        'device = "cuda"',
        'x = torch.rand(3, device="cuda")',
    ):
        assert found(line) == ["cuda_hard_coded"]
    either = 'device = "cpu"\nif torch.cuda.is_available():\n    device = "cuda"'
    assert found(either) == found('name = "cuda"') == []


ANSWERS = "correct += (outputs.argmax(1) == labels.to(device)).sum()"


def test_loading_whatever_is_in_a_file_is_pointed_at():
    allowed = "map_location=device -> map_location=device, weights_only=False"
    assert slugs(allowed) == [("pickle_refused", "look")]
    assert "weights_only=False" in lines(allowed)[0]
    assert slugs(allowed.replace("False", "True")) == []
    assert found('x = json.load(f, "cpu", weights_only=False)') == []


@pytest.mark.parametrize(
    ("made", "saved", "sure"),
    [
        (f"from torchvision import models\n{MADE}", "model", []),  # whose Net is that?
        ("model = nn.Sequential(a)\n", "model", REFUSED),
        ("model = nn.Sequential(a).to(device)\n", "model", REFUSED),
        ("model = models.resnet18()\n", '{"model": model, "epoch": 3}', REFUSED),
        (ASKED, "model", [("pickle_refused", "likely")]),
        (ASKED, "model.state_dict()", []),
        (ASKED, '{"model": model.state_dict(), "epoch": 3}', []),
        (f"{ASKED}model = model.state_dict()\n", "model", []),
        (f"{ASKED}model = torch.jit.script(model)\n", "model", []),
        ("", "model", []),
    ],
)
def test_a_model_that_is_saved_whole_is_found(made, saved, sure):
    findings = check(f'{made}torch.save({saved}, "model.pt")').findings
    assert [(finding.slug, finding.sureness) for finding in findings] == sure


def test_what_is_said_of_a_model_saved_whole_is_so():
    model, whole, state = nn.Sequential(nn.Linear(2, 2)), io.BytesIO(), io.BytesIO()
    torch.save(model, whole)
    torch.save(model.state_dict(), state)
    for file in (whole, state):
        file.seek(0)
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(whole, map_location="cpu")
    assert torch.load(state, map_location="cpu").keys() == model.state_dict().keys()
