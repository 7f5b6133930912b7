import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun.remarks import REMARKS as SAID
from to_device.dryrun.report import OK, SCRIPT_ERROR

SCRIPT = """\
import io
import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Dropout(), nn.Linear(8, 3))
    def forward(self, x):
        return self.layers(x)

model = Net().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
print(model(torch.rand(1, 8, device=device)).shape)
for epoch in range(3):
    model.train()
    for step in range(4):
        inputs, labels = torch.rand(16, 8).to(device), torch.arange(16).to(device) % 3
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(model(inputs).argmax(1).shape)
torch.save(model.state_dict(), io.BytesIO())
"""
REMARKS = {  # what is changed, and the line and the key of what is said then
    "": [],
    "criterion(outputs, labels) -> criterion(outputs.softmax(1), labels)": [
        (23, "softmax_before_loss")
    ],
    "criterion(outputs, labels) -> F.cross_entropy(F.softmax(outputs, -1), labels)": [
        (23, "softmax_before_loss")
    ],
    "outputs = model(inputs) -> outputs = model(inputs).exp(); "
    "outputs = outputs / outputs.sum(1, keepdim=True)": [(23, "softmax_before_loss")],
    "criterion(outputs, labels) -> F.nll_loss(F.log_softmax(outputs, 1), labels)": [],
    "nn.Linear(8, 3)) -> nn.Linear(8, 3), nn.Softmax(1))": [
        (23, "softmax_before_loss")
    ],
    "argmax(1) -> softmax(1).argmax(1)": [],
    "criterion(outputs, labels) -> F.binary_cross_entropy_with_logits("
    "outputs.sigmoid()[:, 0], labels / 2)": [(23, "sigmoid_before_loss")],
    "criterion(outputs, labels) -> F.binary_cross_entropy_with_logits("
    "outputs[:, 0], labels / 2)": [],
    "criterion = -> model.cpu(); model = Net().to(device); criterion =": [
        (15, "idle_optimizer")
    ],
    "with torch.no_grad(): -> if True:": [(29, "recorded")],
    "    model.eval()\n -> \n": [(29, "no_eval_mode")],
    "    model.train()\n -> \n": [(27, "not_restored")],
    "model.state_dict() -> model": [(30, "pickle_refused")],
    "model.state_dict() -> {'model': model, 'epoch': 3}": [(30, "pickle_refused")],
    "model.state_dict() -> [3, {'best': {'model': model}}]": [(30, "pickle_refused")],
    "model.state_dict() -> torch.nn.Linear(2, 2).state_dict()": [],
}


@pytest.mark.parametrize("change", REMARKS)
def test_what_is_said_of_a_training(change: str) -> None:
    before, _, after = change.partition(" -> ")
    assert before in SCRIPT
    report = dry_run(SCRIPT.replace(before, after) if before else SCRIPT)
    assert report.status == OK, report.failure
    assert report.on_cpu is None
    remarks = [(remark.line.number, remark.say) for remark in report.remarks]
    assert remarks == [(line, SAID[key]) for line, key in REMARKS[change]]


def test_a_generator_that_is_only_asked_between_steps_is_not_blamed() -> None:
    text = SCRIPT.replace(
        "        optimizer.zero_grad()\n",
        "        with torch.no_grad(): model(torch.rand(2, 8, device=device))\n"
        "        optimizer.zero_grad()\n",
    )
    assert dry_run(text).remarks == []


def test_two_optimizers_that_alternate_on_one_model() -> None:
    other = "other = torch.optim.SGD(model.parameters()); criterion ="
    text = SCRIPT.replace("criterion =", other)
    text = text.replace("optimizer.step()", "optimizer.step(); other.step()")
    remarks = [(remark.line.number, remark.say) for remark in dry_run(text).remarks]
    assert remarks == [(16, SAID["same_parameters"])]


def test_an_optimizer_that_trained_for_some_steps_is_not_idle() -> None:
    text = SCRIPT.replace("optimizer.step()", "optimizer.step(); more.step()")
    text = text.replace(
        "criterion =", "more = torch.optim.SGD(late.parameters())\ncriterion ="
    )
    text = text.replace("optimizer =", "late = nn.Linear(3, 3).to(device)\noptimizer =")
    late = "loss = criterion(late(outputs) if epoch < 100 else outputs, labels)"
    text = text.replace("loss = criterion(outputs, labels)", late)
    text = text.replace(
        "optimizer.zero_grad()", "optimizer.zero_grad(); more.zero_grad()"
    )
    assert [each.slug for each in dry_run(text).remarks] == []


def test_an_optimizer_within_an_optimizer_counts_once() -> None:
    wrapper = """class Wrapper(torch.optim.Optimizer):
    def step(self, closure=None):
        self.inner.step()

inner = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = Wrapper(model.parameters(), {}); optimizer.inner = inner
"""
    maker = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    assert dry_run(SCRIPT.replace(maker, wrapper)).remarks == []


def test_training_and_evaluation_in_one_function_are_distinguished() -> None:
    text = SCRIPT.replace("model = Net()", "def ask(x): return model(x)\nmodel = Net()")
    text = text.replace("outputs = model(inputs)", "outputs = ask(inputs)")
    text = text.replace("with torch.no_grad():", "if True:")
    text = text.replace("print(model(inputs)", "print(ask(inputs)")
    remarks = [(remark.line.number, remark.say) for remark in dry_run(text).remarks]
    assert remarks == [(30, SAID["recorded"])]


@pytest.mark.parametrize(("layers", "says"), [(2, True), (1, False)])
def test_a_recurrent_layer_has_a_dropout_of_its_own(layers: int, says: bool) -> None:
    text = SCRIPT.replace("nn.Dropout(), nn.Linear(8, 3))", "nn.Linear(8, 3))")
    text = text.replace(
        "    def forward(self, x):",
        f"        self.rnn = nn.GRU(8, 8, {layers}, dropout={layers - 1} / 2)\n"
        "    def forward(self, x):\n        x, _ = self.rnn(x[None]); x = x[0]",
    )
    remarks = dry_run(text.replace("    model.eval()\n", "")).remarks
    assert ("no_eval_mode" in [remark.slug for remark in remarks]) == says


def test_a_method_of_the_model_is_blamed_on_its_caller() -> None:
    text = SCRIPT.replace("print(model(inputs)", "print(ask(model, inputs)")
    text = text.replace("with torch.no_grad():", "if True:").replace(
        "    def forward(self, x):",
        "    def predict(self, x): return self.layers(x)\n    def forward(self, x):",
    )
    asks = "def ask(model, x): return model.predict(x)\nmodel = Net()"
    text = text.replace("model = Net()", asks)
    remarks = [(remark.line.number, remark.say) for remark in dry_run(text).remarks]
    assert remarks == [(15, SAID["recorded"])]


@pytest.mark.parametrize("every", [1, 2, 3])
def test_an_evaluation_with_autograd_counts_in_whichever_epoch(every: int) -> None:
    text = SCRIPT.replace(
        "    with torch.no_grad():",
        f"    for _ in [0] * 3 if epoch % {every} == 0 else []:",
    )
    remarks = [(remark.line.number, remark.say) for remark in dry_run(text).remarks]
    assert remarks == [(29, SAID["recorded"])]


UNUSED = {  # what comes before a step
    "a pass between steps": "model(inputs).detach()",
    "layers that run again in the backward pass": "torch.utils.checkpoint.checkpoint("
    "model, inputs, use_reentrant=False).sum().backward()",
    "a gradient without autograd's graph": "torch.func.grad(lambda p: "
    "torch.func.functional_call(model, p, (inputs,)).sum())"
    "(dict(model.named_parameters()))",
    "a pass of a turn that fails": "kept = [model(inputs) for _ in "
    "[0] * 3 if epoch > 1]; "
    "epoch < 2 or model(inputs) + torch.ones(1, 9)",
}


@pytest.mark.parametrize("before", UNUSED.values(), ids=UNUSED)
def test_passes_of_a_training_are_no_evaluation(before: str) -> None:
    text = SCRIPT.replace(
        "        optimizer.zero_grad()",
        f"        {before}\n        optimizer.zero_grad()",
    )
    assert dry_run(text).remarks == []


def test_a_model_that_trains_itself_does_not_evaluate_there() -> None:
    text = """
import torch
from torch import nn

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = nn.Linear(4, 4)

    def act(self, x):
        self.policy.eval()
        return self.policy(x).argmax(1)

    def learn(self, x):
        optimizer = torch.optim.SGD(self.policy.parameters(), 0.1)
        for _ in range(9):
            for _ in range(5):
                actions = self.act(x)
            self.policy.train()
            optimizer.zero_grad()
            nn.functional.cross_entropy(self.policy(x), actions).backward()
            optimizer.step()

Agent().cuda().learn(torch.rand(8, 4, device="cuda"))
"""
    assert dry_run(text).remarks == []


SAMPLING = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Dropout()).to("cuda")
model.load_state_dict(model.state_dict())
with torch.no_grad():
    for _ in range(4):
        y = model(torch.rand(8, 4, device="cuda"))
"""


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ("", [8]),
        ("model.load_state_dict(model.state_dict()) -> ", []),  # it tries a model out
        ("no_grad -> enable_grad", []),  # perhaps, it trains without an optimizer
        ("model.state_dict() -> model.eval().state_dict()", []),
        # What is around the model is in training mode, and no layer with modes is.
        ("model.load -> model = nn.Sequential(model.eval()); model.load", []),
    ],
)
def test_sampling_in_training_mode(change: str, lines: list[int]) -> None:
    before, _, after = change.partition(" -> ")
    remarks = dry_run(SAMPLING.replace(before, after) if before else SAMPLING).remarks
    assert [(r.line.number, r.say) for r in remarks] == [
        (line, SAID["no_eval_mode"]) for line in lines
    ]


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        ("criterion(model(inputs), labels + 1)", 10),
        ("labels = labels - 3; criterion(model(inputs), labels)", 29),
        ("embed = nn.Embedding(2, 4).to(device); embed(labels)", 29),
        ("model(inputs, labels + 1)", 10),
    ],
)
def test_a_label_out_of_range(rest: str, line: int) -> None:
    """A call that fails is no evaluation, whatever the mode in its middle is."""
    text = SCRIPT.replace("print(model(inputs).argmax(1).shape)", rest).replace(
        "    def forward(self, x):\n",
        "    def forward(self, x, labels=None):\n        if labels is not None: "
        "F.cross_entropy(self.train().layers(x), labels)\n",
    )
    report = dry_run(text)
    assert report.status == SCRIPT_ERROR
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == line + (line > 10)
    assert "device-side assert" in report.failure.why
    assert report.remarks == []


SIZES = """
import torch
from torch import nn
class Head(nn.Module):
    def __init__(self, width, *, classes=2):
        super().__init__()
        self.table = nn.Embedding(width, 4)
        self.out = nn.Linear(4, classes)
    def forward(self, x):
        return self.out(self.table(x))
class Net(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.head = Head(width, classes=classes)
    def forward(self, x):
        return self.head(x)
def build(classes):
    return Net(5, classes)
net = build(2).cuda()
out, label = net(torch.tensor([4]).cuda()), torch.tensor([2]).cuda()
loss = nn.functional.cross_entropy(out, label)
"""


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("", 19),  # the call that chose the number of classes
        ("Net(5, classes) -> Net(4, classes)", 18),
        ("classes=classes -> ", 14),  # the default is at fault
        ("classes) -> 2)", 8),
        ("self.head = -> classes = 2; self.head =", 14),
    ],
)
def test_who_chose_a_layers_size(change: str, line: int) -> None:
    """A constructor or a function that only hands a size on doesn't count."""
    before, _, after = change.partition(" -> ")
    text = SIZES.replace(before, after, 1) if before else SIZES
    report = dry_run(text)
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == line


@pytest.mark.parametrize(("kept", "grows"), [("", False), ("kept.append(x)", True)])
def test_batches_that_are_larger_by_chance_are_no_growth(kept: str, grows: bool):
    text = f"""\
import torch
kept = []
model = torch.nn.Linear(8, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 9):
    x = torch.rand(step * 100, 8).cuda()
    loss = model(x).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {kept}
"""
    assert bool(dry_run(text).growth) == grows


@pytest.mark.parametrize(
    ("end", "kind"),
    [("sys.exit(1)", "IndexError"), ("pass\nsys.exit(1)", "SystemExit")],
)
def test_an_error_for_which_a_script_is_ended_is_told(end: str, kind: str):
    text = f"""\
import sys
try:
    [][3]
except IndexError:
    {end}
"""
    report = dry_run(text)
    assert report.status == SCRIPT_ERROR
    assert report.failure
    assert report.failure.kind == kind
