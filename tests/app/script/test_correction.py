import ast
import re
from dataclasses import replace
from itertools import product

import pytest

from core.jobs.child_process import ChildDiedError
from core.script import check, correction, differences
from core.script.check import Checked
from core.script.correction import correct
from core.script.device_edits import Fault
from core.script.edits import CHOICE, OTHERS, edits

pytestmark = pytest.mark.usefixtures("unhurried")

START = f"""\
import torch
from torch import nn

device = {CHOICE}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)  # the first layer
        self.out = nn.Linear(8, 3)
        self.scale = torch.ones(8)
        self.more = [nn.Linear(8, 8)]

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        return self.out(x)


data = torch.utils.data.TensorDataset(torch.rand(64, 6), torch.randint(3, (64,)))
loader = torch.utils.data.DataLoader(data, 16)
model = Net().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = []
for epoch in range(2):
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
"""
MOVE = "        inputs, labels = inputs.to(device), labels.to(device)\n"
ENTER, LEAVE = "    for inputs, labels in loader:\n", "        optimizer.step()\n"
CASES = {  # changes of START, and the lines that a correction changes in it
    "labels": (
        {MOVE: MOVE.replace(", labels", "").replace(", labels.to(device)", "")},
        ["+        labels = labels.to(device)"],
    ),
    "batch": (
        {MOVE: ""},
        ["+        inputs = inputs.to(device)", "+        labels = labels.to(device)"],
    ),
    "dropped": (
        {MOVE: "        inputs.to(device)\n        labels = labels.to(device)\n"},
        ["-        inputs.to(device)", "+        inputs = inputs.to(device)"],
    ),
    "model": (
        {"Net().to(device)": "Net()  # späť"},
        ["-model = Net()  # späť", "+model = Net().to(device)  # späť"],
    ),
    "buffer": (
        {"self.fc1(x)": "self.fc1(x) * self.scale"},
        [
            "-        self.scale = torch.ones(8)",
            '+        self.register_buffer("scale", torch.ones(8))',
        ],
    ),
    "layers": (
        {"self.fc1(x)": "self.more[0](self.fc1(x))"},
        [
            "-        self.more = [nn.Linear(8, 8)]",
            "+        self.more = nn.ModuleList([nn.Linear(8, 8)])",
        ],
    ),
    "forward": (
        {"self.fc1(x)": "self.fc1(x) + torch.zeros(8)"},
        [
            "-        x = torch.relu(self.fc1(x) + torch.zeros(8))",
            "+        x = torch.relu(self.fc1(x) + torch.zeros(8, device=x.device))",
        ],
    ),
    "weights": (
        {"EntropyLoss()": "EntropyLoss(weight=torch.ones(3))"},
        [
            "-criterion = nn.CrossEntropyLoss(weight=torch.ones(3))",
            "+criterion = nn.CrossEntropyLoss(weight=torch.ones(3, device=device))",
        ],
    ),
    "clear": (
        {"        optimizer.zero_grad()\n": ""},
        ["+        optimizer.zero_grad()"],
    ),
    "graph": (
        {LEAVE: f"{LEAVE}        history.append(loss)\n"},
        [
            "-        history.append(loss)",
            "+        history.append(loss.detach())",
        ],
    ),
    "numpy": (
        {LEAVE: f"{LEAVE}history = loss.detach().numpy()\n"},
        [
            "-history = loss.detach().numpy()",
            "+history = loss.detach().cpu().numpy()",
        ],
    ),
    "probabilities": (
        {"return self.out(x)": "return 2 * torch.softmax(self.out(x) + 1, dim=1) / 2"},
        [
            "-        return 2 * torch.softmax(self.out(x) + 1, dim=1) / 2",
            "+        return 2 * (self.out(x) + 1) / 2",
        ],
    ),
    "only a CPU": (
        {f"device = {CHOICE}\n\n": "", MOVE: "", ".to(device)": ""},
        [
            f"+device = {CHOICE}",
            "-model = Net()",
            "+model = Net().to(device)",
            "+        inputs = inputs.to(device)",
            "+        labels = labels.to(device)",
        ],
    ),
    "only CUDA": (
        {f"device = {CHOICE}\n\n": "", ".to(device)": ".cuda()"},
        [
            f"+device = {CHOICE}",
            "-model = Net().cuda()",
            "+model = Net().to(device)",
            "-        inputs, labels = inputs.cuda(), labels.cuda()",
            f"+{MOVE.rstrip()}",
        ],
    ),
}


def written(changes: dict[str, str]) -> str:
    text = START
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


def changed(before: str, after: str) -> list[str]:
    """The lines that were taken out or put in, in order; empty ones don't count."""
    marked = differences.changes(before, after).splitlines()
    return [line for line in marked if line[0] in "+-" and line[1:].strip()]


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_corrected_where_a_person_would(name):
    changes, expected = CASES[name]
    text = written(changes)
    corrected = correct(text, "here")
    assert [line for line in changed(text, corrected.text) if line in expected] == (
        expected
    )
    assert corrected.checked.ran
    assert not [p for p in corrected.checked.problems if p.sureness == "sure"]
    assert (corrected.runs_without, corrected.why_not) == (True, "")


def test_several_mistakes_are_corrected_and_the_rest_of_the_text_stays():
    text = written(
        {
            MOVE: "",
            "        optimizer.zero_grad()\n": "",
            "self.fc1(x)": "self.fc1(x) * self.scale",
        }
    ).replace("\n", "\r\n")
    corrected = correct(text, "here")
    assert corrected.runs_without
    assert not corrected.checked.problems
    kept = [line for line in changed(text, corrected.text) if line[0] == "-"]
    assert kept == ["-        self.scale = torch.ones(8)"]
    assert re.search(r"[^\r]\n", corrected.text) is None


def test_a_script_that_needs_a_gpu_says_why():
    text = START + "model.weight = torch.cuda.get_device_name(0)\n"
    assert correct(text, "here").text == text
    broken = text.replace(MOVE, "")
    corrected = correct(broken, "here")
    assert changed(broken, corrected.text)
    assert not corrected.runs_without
    assert corrected.why_not


def test_without_a_run_only_what_reading_shows_is_changed():
    text = written({MOVE: ""}) + 'model.load_state_dict(torch.load("a.pt"))\n'
    corrected = correct(text, "off")
    assert [line.strip("+ ") for line in changed(text, corrected.text)] == [
        "inputs = inputs.to(device)",
        "labels = labels.to(device)",
        '-model.load_state_dict(torch.load("a.pt"))',
        'model.load_state_dict(torch.load("a.pt", map_location=device))',
    ]
    assert corrected.checked == Checked()
    assert not corrected.runs_without


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "def f(:",
        "import torch\nraise SystemExit(3)",
        "import torch\nunknown + torch.rand(3)",
        "x = 1\n" * correction.MOST_CHARACTERS,
    ],
)
def test_what_no_change_helps_stays_as_it_is(text):
    corrected = correct(text, "here")
    assert (corrected.text, corrected.changes) == (text, "")


def test_the_changes_are_told_unless_comparing_takes_too_long(monkeypatch):
    text = START + 'model.load_state_dict(torch.load("a.pt"))\n'
    corrected = correct(text, "off")
    assert corrected.changes == differences.changes(text, corrected.text) != ""
    call = correction.child_process.call

    def killed(address, *arguments, **limits):
        if address.startswith("core.script.differences"):
            raise ChildDiedError("The process took too long.")
        return call(address, *arguments, **limits)

    monkeypatch.setattr(correction.child_process, "call", killed)
    assert correct(text, "off") == replace(corrected, changes="")


def test_a_script_that_was_stopped_is_not_run_again(monkeypatch):
    monkeypatch.setattr(correction.code, "SECONDS", 2.0)
    runs = []
    run = correction.check.run

    def counted(*arguments, **more):
        runs.append(arguments)
        return run(*arguments, **more)

    monkeypatch.setattr(correction.check, "run", counted)
    script = "import time\nimport torch\ntime.sleep(60)\ntorch.ones(2).cuda()\n"
    corrected = correct(script, "here")
    assert len(runs) == 1
    assert "cuda" not in corrected.text.split("sleep")[1]


def test_it_ends_in_time(monkeypatch):
    monkeypatch.setattr(correction, "MOST_RUNS", 3)
    runs = []
    monkeypatch.setattr(
        check,
        "run",
        lambda *args, run=check.run, **more: runs.append(1) or run(*args, **more),
    )
    text = written({MOVE: "", "self.fc1(x)": "self.fc1(x) * self.scale"})
    correct(text, "here")
    assert 1 < len(runs) <= 3 + 1  # and one without a GPU


MANY = """\
import torch as t, torch.nn as nn
a, b = 1, 2; c = 3
for i, (x, (y, _)) in enumerate(z): pass
for x in z:
    with q as w: x.to(d); y = x
if a: b
else:
\tx, y = f(x)[0], (
        y)
async def g(*args, device=None, **more):
    await x.numpy()
    total += ("é" * 3
              ).cuda(non_blocking=True)
    return [t.zeros(3) for _ in args], lambda: x.cpu()
class A(nn.Module):
    def f(self, u): self.k = {}; self.m = u.softmax(1)
opt = t.optim.SGD(m.parameters()); m.to('cpu')
x = '''a
b''' if a else t.rand(2, device='cuda')
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_change_can_be_read_and_leaves_the_other_lines_alone(end):
    names = (*OTHERS, *(key for key in check.words.table("ran")))
    names = (*names, "cuda_hard_coded", "cuda_checkpoint", "no_zero_grad", "recorded")
    names = (*names, "graph_kept", "softmax_before_loss", "no_eval_mode")
    text = MANY.replace("\n", end)
    before = text.split(end)
    count = 0
    for name, line in product(names, range(1, len(before) + 1)):
        why = "bring it there with .cpu()" if line % 2 else ""
        fault = Fault(name, line, len(before) - line, why, ("x", "y"))
        for edited in edits(text, fault):
            count += 1
            ast.parse(edited)
            after = edited.split(end)
            assert edited != text
            assert sum(line in after for line in before) >= len(before) - 6
    assert count > 100
