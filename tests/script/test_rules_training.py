"""Each rule, with its mistake and without."""

import pytest

from core.script.check import check
from tests.script.right import RIGHT, changed, lines, slugs

SOFTMAX = ("softmax_before_loss", "sure")
FORWARD = "return self.fc(x)"
LOSS = "loss = criterion(outputs, labels)"
ADDED = "total += loss.detach()"
SYNCHRONIZE = "        torch.accelerator.synchronize()\n -> "
NO_GRAD = "with torch.inference_mode(): -> if True:"


@pytest.mark.parametrize(
    "change",
    [
        "criterion(outputs, labels) -> criterion(outputs.softmax(1), labels)",
        "criterion(outputs, labels) -> F.cross_entropy(torch.softmax(outputs, 1), y)",
        f"{LOSS} -> outputs = outputs.softmax(1)\n            {LOSS}",
        f"{LOSS} -> outputs = nn.Softmax(dim=1)(outputs)\n            {LOSS}",
    ],
)
def test_softmax_before_the_loss_is_found(change):
    assert slugs(change) == [SOFTMAX]


def test_a_model_that_ends_with_softmax_is_likely_wrong():
    likely = [("softmax_before_loss", "likely")]
    assert slugs(f"{FORWARD} -> return self.fc(x).softmax(1)") == likely
    assert slugs(f"{FORWARD} -> x = F.softmax(x)\n        return x") == likely
    layer = "nn.Linear(784, 10)\n -> nn.Sequential(nn.Linear(784, 10), nn.Softmax())\n"
    assert slugs(layer) == likely
    both = f"{FORWARD} -> return x, F.softmax(x)"
    assert slugs(both) == []
    other = "nn.CrossEntropyLoss() -> nn.NLLLoss()"
    assert slugs(f"{FORWARD} -> return F.softmax(self.fc(x))", other) == []


@pytest.mark.parametrize(
    "change",
    [
        "outputs.argmax(1) -> outputs.softmax(1).argmax(1)",
        f"{FORWARD} -> return F.log_softmax(self.fc(x), 1)",
    ],
)
def test_softmax_elsewhere_is_not_blamed(change):
    assert slugs(change) == []


def test_a_missing_zero_grad_is_found():
    without = "            optimizer.zero_grad()\n -> "
    assert slugs(without) == [("no_zero_grad", "sure")]
    assert lines(without) == ["optimizer.step()"]
    for other in ("model.zero_grad()", "for p in ps: p.grad = None"):
        assert slugs(f"optimizer.zero_grad() -> {other}") == []
    elsewhere = "if __name__ -> def other(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(without, elsewhere) == [("no_zero_grad", "likely")]
    helped = "optimizer.zero_grad() -> clear(optimizer)"
    helper = "if __name__ -> def clear(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(helped, helper) == []


def test_an_optimizer_of_another_model_is_found():
    criterion = "    criterion = nn.CrossEntropyLoss()\n"
    optimizer = "    optimizer = torch.optim.Adam(model.parameters())\n"
    anew = "    model = Net().to(device)\n"
    both = optimizer + anew
    assert slugs(f"{optimizer} -> {both}") == [("", "sure")]
    assert slugs(f"{criterion} -> {criterion}{anew}") == []
    end = "if __name__ -> model = Net()\n\nif __name__"
    assert slugs(end) == []


def test_a_missing_eval_is_found():
    without = "        model.eval()\n -> "
    assert slugs(without) == [("no_eval_mode", "sure")]
    assert lines(without) == ["for inputs, labels in test_loader:"]
    dropout = "        self.dropout = nn.Dropout(0.5)\n -> "
    unused = "self.dropout(x.flatten(1)) -> x.flatten(1)"
    assert slugs(without, dropout, unused) == [("no_eval_mode", "look")]


WHOLE = """\
class Net(nn.Module):
    dropout = nn.Dropout()
model = Net().to(device)
for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x.to(device)), y.to(device)).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("lines", "blamed"),
    [
        ("right = model(x_test.to(device)).argmax(1) == y_test", True),
        ("def evaluate(loader):\n    for x, _ in loader:\n        model(x)", True),
        ("right = model(x_latest.to(device))", False),
        ("def predict(loader):\n    for x, _ in loader:\n        model(x)", False),
    ],
)
def test_an_evaluation_is_known_by_its_data_or_its_function(lines, blamed):
    said = " ".join(finding.say for finding in check(WHOLE + lines).findings)
    assert ("`model.eval()`" in said) == blamed
    assert ("Autograd records" in said) == blamed


def test_gradients_in_an_evaluation_are_found():
    assert slugs(NO_GRAD) == [("", "sure")]
    assert slugs("torch.inference_mode() -> torch.no_grad()") == []
    decorated = "def main -> @torch.no_grad()\ndef main"
    assert slugs(NO_GRAD, decorated) == []


def test_a_training_mode_that_is_not_restored_is_found():
    before = "    for epoch -> model.train()\n    for epoch".replace(" -> ", " ->     ")
    without = "        model.train()\n -> "
    (finding,) = changed(without, before)
    assert (finding.slug, finding.sureness) == ("no_eval_mode", "sure")
    assert "model.train()" in finding.say


def test_a_clock_without_synchronize_is_found():
    quiet = "print(loss.item()) -> pass"
    assert slugs(SYNCHRONIZE, quiet) == [("timing_unsynchronized", "likely")]
    assert slugs(quiet) == []
    waits = f"{ADDED} -> total += loss.item()"
    assert slugs(SYNCHRONIZE, waits) == []


def test_a_clock_around_other_work_is_not_blamed():
    text = "device = 'mps'\nt = time.time()\nread(f)\nprint(time.time() - t)"
    assert check(text).findings == ()


def test_workers_without_a_guard_are_found():
    loop = "for x, y in DataLoader(data, num_workers=2):\n    f(x).backward()\n"
    (found,) = check(loop).findings
    assert (found.line, found.sureness) == (1, "likely")
    assert "__main__" in found.say
    assert check(f"!pip install torch\n{loop}").findings == ()
    assert len(check(f"{loop}    print('%d'\n        % 3)").findings) == 1
    assert check(loop.replace("=2", "=0")).findings == ()
    inside = loop.replace("\n", "\n    ")
    assert check(f"def train():\n    {inside}").findings == ()
    called = RIGHT.replace('if __name__ == "__main__":\n    main', "main")
    assert [finding.line for finding in check(called).findings] == [18]
