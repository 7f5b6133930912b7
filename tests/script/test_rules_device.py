"""Each rule on a script with its mistake, and without."""

import io

import pytest
import torch
from torch import nn

from core.script.check import check
from core.script.syntax import OPTIMIZERS
from tests.script.right import RIGHT, changed, lines, slugs

OPTIMIZER = "optimizer = torch.optim.Adam(model.parameters())"
MOVE = "    model = model.to(device)\n"
MADE = "model = Net()\n"
ASKED = "model = build()\nSGD(model.parameters())\n"
REFUSED = [("pickle_refused", "sure")]
LATE = (f"{MOVE} -> ", f"    {OPTIMIZER}\n ->     {OPTIMIZER}\n{MOVE}")


def found(text: str) -> list[str]:
    return [finding.slug for finding in check(text).findings]


def test_the_right_script_is_not_blamed():
    assert changed() == []


def test_a_copy_that_nobody_keeps_is_found():
    moved = "inputs = inputs.to(device)\n -> inputs.to(device)\n"
    findings = [f for f in changed(moved) if f.slug == "to_not_reassigned"]
    assert [finding.sureness for finding in findings] == ["sure"]
    assert "inputs = inputs.to" in findings[0].say
    (unknown,) = check("def step(x, device):\n    x.to(device)\n").findings
    assert unknown.sureness == "likely"
    (part,) = check(
        "for b in loader:\n    masks = b['mask']\n    masks.to(device)"
    ).findings
    assert (part.line, part.sureness) == (3, "likely")


@pytest.mark.parametrize(
    "text",
    [
        "model.to(device)\nopt = SGD(model.parameters())",
        "self.to(device)",
        "metric.to(device)",
        "x = x.to(device)",
        "f(x.to(device))",
        "from transformers import AutoTokenizer\ninputs = tok(t)\ninputs.to(device)",
    ],
)
def test_what_moves_in_place_is_not_blamed(text):
    assert found(text) == []


def test_a_model_that_is_not_moved_is_found():
    assert slugs(f"{MOVE} -> ") == [("model_not_moved", "likely")]
    assert lines(f"{MOVE} -> ") == ["model = Net()"]
    by_another = "model = Net() -> model = wrap(Net())"
    assert slugs(f"{MOVE} -> ", by_another) == []
    assert slugs(f"{MOVE} -> ", "model = Net() -> model = Net().to(device)") == []


def test_a_batch_that_is_not_moved_is_found():
    inputs = "            inputs = inputs.to(device)\n -> "
    labels = "            labels = labels.to(device)\n -> "
    assert slugs(inputs) == [("data_not_moved", "likely")]
    assert slugs(labels) == [("labels_not_moved", "likely")]
    assert slugs(inputs, labels) == [
        ("data_not_moved", "likely"),
        ("labels_not_moved", "likely"),
    ]


@pytest.mark.parametrize(
    "move",
    [
        "inputs, labels = inputs.to(device), labels.to(device)",
        "inputs, labels = (each.to(device) for each in (inputs, labels))",
        "inputs, labels = to_device((inputs, labels))",
        "inputs, labels = inputs.cuda(), labels.cuda()",
        "inputs = prepare(inputs)\n            labels = prepare(labels)",
    ],
)
def test_a_batch_may_be_moved_in_any_way(move):
    both = "inputs = inputs.to(device)\n            labels = labels.to(device)"
    found = {slug for slug, _ in slugs(f"{both} -> {move}")}
    assert found <= {"cuda_hard_coded"}


def test_a_model_moved_after_its_optimizer_is_found():
    assert slugs(*LATE) == [("", "look")]
    late = [each.replace("Adam", "Adagrad") for each in LATE]
    adagrad = f"{OPTIMIZER} -> {OPTIMIZER.replace('Adam', 'Adagrad')}"
    assert slugs(adagrad, *late) == [("", "sure")]
    assert lines(*LATE) == ["model = model.to(device)"]


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


@pytest.mark.parametrize(
    ("lines", "blamed"),
    [
        ("answers = outputs.argmax(1).numpy()", True),
        ("answers = torch.argmax(outputs, 1).numpy()", True),
        (
            "_, answers = outputs.max(1)\n                answers = answers.numpy()",
            True,
        ),
        ("answers = model(inputs.to(device)).detach().numpy()", True),
        ("answers = outputs.argmax(1).cpu().numpy()", False),
        ("outputs = outputs.to('cpu')\n                a = outputs.numpy()", False),
        ("answers = outputs.numpy(force=True)", False),
        ("answers = labels.numpy()", False),
    ],
)
def test_an_array_of_what_is_on_the_device_is_found(lines, blamed):
    expected = [("numpy_on_device", "likely")] * blamed
    assert slugs(f"{ANSWERS} -> {lines}") == expected
    assert slugs(f"{ANSWERS} -> {lines}", "        model.eval() -> model.cpu()") in (
        [],
        [("no_eval_mode", "sure")],
    )


def test_a_value_that_is_made_of_itself_over_lines_is_read():
    text = "model = Net().cuda()\nx = (\n    x\n    .view(3)\n)\nx.numpy()"
    assert "numpy_on_device" not in found(text)


def test_whoever_leaves_devices_to_a_library_is_not_blamed():
    text = RIGHT.replace(".to(device)", "").replace("device=device", "")
    assert found("from accelerate import Accelerator\n" + text) == []


def test_only_adagrad_makes_its_state_at_once():
    at_once = set()
    for name in OPTIMIZERS & {*dir(torch.optim)}:
        layer = nn.Linear(2, 2, bias=False)
        if getattr(torch.optim, name)(layer.parameters(), lr=0.1).state:
            at_once.add(name)
    assert at_once == {"Adagrad"}


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
