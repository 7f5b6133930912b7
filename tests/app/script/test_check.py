import sys

import pytest
import torch

from core.script import check as checking
from core.script.check import Checked, check, check_in_child
from core.script.syntax import MOST_BYTES, ParsedScript

pytestmark = pytest.mark.usefixtures("unhurried")

UNREADABLE = {  # a text, and what the sentence about it says
    "def f(:": "Line 1",
    "x = 1\n\tif x:\n        y": "Line 2",
    "x = 1\nprint 'loss', x": "Line 2",
    "if x:\n\ty = 1\n        z = 2": "Line 3",
    "(" * 5_000: "Line 1",
    "-" * 50_000 + "1": "nested",
    "a" + ".a" * 50_000: "nested",
    "a\0b": "null bytes",
    '{"cells": [], "nbformat": 4}': "notebook file",
    "x = 1\n" * (MOST_BYTES // 6 + 1): "200 KB",
    "é" * MOST_BYTES: "200 KB",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_a_sentence(text):
    checked = check(text)
    assert checked.problems == ()
    assert UNREADABLE[text] in checked.unreadable
    assert checked.unreadable.endswith(".")


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# nothing", "x = '%d' % 3\n", "x = ('%d'\n     % 3)", "\ufeffx = 1"],
)
def test_what_has_no_mistake_finds_none(text):
    assert check(text) == Checked()


def test_a_notebook_is_read_with_its_magic():
    cells = "!pip install torch\n%matplotlib inline\nfiles = !ls\nif x:\n    !ls\n"
    (problem,) = check(f"{cells}y = torch.load(f)").problems
    assert problem.line == 6
    assert ParsedScript(cells).is_notebook


def test_reading_runs_and_imports_nothing():
    check("import antigravity\nimport sys\nsys.exit(1)\nraise SystemExit\n")
    assert "antigravity" not in sys.modules


def test_a_script_that_recurses_without_end_is_checked():
    text = "def f():\n    g()\ndef g():\n    f()\nfor x in y:\n    f()"
    assert check(text).problems == ()


def test_it_is_checked_in_a_process_of_its_own(monkeypatch):
    call_arguments = {}

    def call(address, *arguments, **limits):
        call_arguments.update(limits, address=address)
        return check(*arguments)

    monkeypatch.setattr(checking.child_process, "call", call)
    assert check_in_child("x = 1") == Checked()
    assert call_arguments["hostile"]
    assert call_arguments["seconds"] == checking.SECONDS
    assert call_arguments["address"] == "core.script.check:check"


DEVICE = """
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
MOVES = f"""{DEVICE}
model = torch.nn.Linear(3, 2).to(device)
x = torch.rand(4, 3)
x.to(device)
model(x)
"""
TRAINS = """{device}
model = torch.nn.Linear(3, 2){move}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step in range(8):
    loss = model(torch.rand(4, 3){move}).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss{end}
"""


def training(move: str, end: str) -> str:
    return TRAINS.format(device=DEVICE, move=move, end=end)


NEEDS_ITS_TURN = """\
import torch
device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
net = torch.nn.Linear(512, 8).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batch, losses = torch.rand(16384, 512), []
for i in range(400):
    optimizer.zero_grad()
    loss = net(batch.to(device)).mean()
    loss.backward()
    optimizer.step()
    losses.append(i)
    if i % 300 == 299:
        losses[299]
"""

RUNS = {  # a script; the lines that running it finds, how sure, and a part of each text
    MOVES: [(7, "sure", "RuntimeError")],
    training(".to(device)", ""): [(13, "sure", checking.words("ran.graph"))],
    training(".to(device)", ".item()"): [(13, "look", ".item()")],
    "!pip install torch\n" + training(".to(device)", ".detach()"): [],
    training("", ".detach()"): [(5, "sure", checking.words("ran.on_cpu"))],
}


@pytest.mark.parametrize("text", RUNS)
def test_a_script_that_may_be_run_is_run(text):
    checked = check_in_child(text, "here")
    assert checked.ran
    assert not checked.why_not
    assert len(checked.problems) == len(RUNS[text])
    for problem, (line, sureness, part) in zip(
        checked.problems, RUNS[text], strict=True
    ):
        assert (problem.line, problem.sureness) == (line, sureness)
        assert part in problem.say


def test_a_branch_that_needs_its_turn_is_no_reason_to_say_that_a_script_fails():
    checked = check_in_child(NEEDS_ITS_TURN, "here")
    assert checked.ran
    assert not checked.why_not


def test_a_loop_that_never_ends_has_not_run(monkeypatch):
    monkeypatch.setattr(checking.code, "SECONDS", 4.0)
    checked = check_in_child("x = 1\nwhile True: pass", "here")
    assert not checked.ran
    assert "stopped" in checked.why_not


def test_what_does_not_run_is_read_and_says_so():
    text = "for x, y in loader:\n    state = torch.load(path)\n"
    checked = check_in_child(text, "here")
    assert not checked.ran
    assert "NameError" in checked.why_not
    assert [problem.line for problem in checked.problems] == [2]


DRAWS = """
import matplotlib.pyplot as plt
import seaborn as sns
import torch
from tqdm.auto import tqdm, trange

%matplotlib inline
sns.set_theme()
net = torch.nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
losses = []
for _ in trange(2):
    bar = tqdm(torch.rand(3, 8, 4).split(1), desc="train")
    for x in bar:
        loss = net(x.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.set_postfix(loss=losses[-1])
fig, (left, right) = plt.subplots(1, 2), plt.subplots()
ax = plt.figure(figsize=(4, 3)).add_subplot()
ax.plot(losses, label="loss")
count, bins, _ = plt.hist(losses)
plt.rcParams["font.size"] = 12
plt.title(f"{len(losses)} steps")
plt.show()
"""


@pytest.mark.parametrize("how", ["here", "confined"])
def test_a_script_may_draw_where_nothing_can_be_drawn(how):
    checked = check_in_child(DRAWS, how)
    assert (checked.ran, checked.why_not) == (True, "")
    on_gpu = DRAWS.replace("plt.show()", "plt.imshow(net.weight.detach())")
    checked = check_in_child(on_gpu, how)
    lines = on_gpu.splitlines()
    (found,) = (p for p in checked.problems if "imshow" in lines[p.line - 1])
    assert found.sureness == "sure"


def test_a_package_that_is_not_here_is_no_dead_end():
    checked = check_in_child("import torch\nimport no_such_package as other", "here")
    assert not checked.ran
    assert checked.why_not.startswith("Line 2 raised")
    assert checked.why_not.endswith(checking.words("ran.no_package"))


DATASETS = """
import torch
from torchvision import datasets, transforms
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
data = datasets.{name}("a_folder", {more}transform=transforms.ToTensor(), download=True)
assert torch.rand(1).item() == {number}
first, _ = torch.utils.data.random_split(data, [{count} - 1000, 1000])
images, labels = next(iter(torch.utils.data.DataLoader(first, 8, shuffle=True)))
images, labels = images.to(device), labels.to(device)
assert images.shape == (8, {shape}) and labels.max() < {classes}
assert len(data.targets) == len(data.data) == {count}
"""
KINDS = [  # a dataset, its arguments, and how many images and classes of which shape
    ("FashionMNIST", "", 60_000, 10, "1, 28, 28"),
    ("MNIST", "False, ", 10_000, 10, "1, 28, 28"),
    ("EMNIST", "'letters', train=False, ", 20_800, 27, "1, 28, 28"),
    ("CIFAR10", "train=True, ", 50_000, 10, "3, 32, 32"),
    ("CIFAR100", "", 50_000, 100, "3, 32, 32"),
]


@pytest.mark.parametrize(("name", "more", "count", "classes", "shape"), KINDS)
def test_a_script_gets_datasets_that_nobody_downloads(
    name, more, count, classes, shape
):
    torch.manual_seed(1)
    number = torch.rand(1).item()
    fields = {"count": count, "classes": classes, "shape": shape, "number": number}
    text = DATASETS.format(name=name, more=more, **fields)
    how: checking.How = "confined" if "CIFAR" in name else "here"
    checked = check_in_child(text, how)
    assert (checked.ran, checked.why_not) == (True, "")
