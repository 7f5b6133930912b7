"""core.mistakes.script.files: each rule on a script with its mistake, and without."""

import io

import pytest
import torch
from torch import nn

from core.mistakes.script.check import check
from tests.mistakes.script.right import lines, slugs

MADE = "model = Net()\n"
ASKED = "model = build()\nSGD(model.parameters())\n"
REFUSED = [("pickle_refused", "sure")]


def found(text: str) -> list[tuple[str, str]]:
    """The mistake of each finding in a text, and how sure it is."""
    return [(each.slug, each.sureness) for each in check(text).findings]


def test_loading_whatever_is_in_a_file_is_pointed_at():
    """Where it is allowed in so many words."""
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
    """As far as a name is known to be a module's."""
    assert found(f'{made}torch.save({saved}, "model.pt")') == sure


def test_what_is_said_of_a_model_saved_whole_is_so():
    """torch refuses it by default; its state_dict is taken."""
    model, whole, state = nn.Sequential(nn.Linear(2, 2)), io.BytesIO(), io.BytesIO()
    torch.save(model, whole)
    torch.save(model.state_dict(), state)
    for file in (whole, state):
        file.seek(0)
    with pytest.raises(Exception, match="Weights only load failed"):
        torch.load(whole, map_location="cpu")
    assert torch.load(state, map_location="cpu").keys() == model.state_dict().keys()
