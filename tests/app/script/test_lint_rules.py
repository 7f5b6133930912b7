import pytest

from core.lessons.mistakes.catalogue import BY_SLUG
from core.script.check import check
from core.script.syntax import Problem

RIGHT = """\
import time
import torch
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = self.dropout(x.flatten(1))
        return self.fc(x)

def main(train_set, test_set):
    device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
    train_loader = DataLoader(train_set, batch_size=64, num_workers=2)
    test_loader = DataLoader(test_set, batch_size=64)
    model = Net()
    model = model.to(device)
    model.load_state_dict(torch.load("net.pt", map_location=device))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    total = torch.zeros((), device=device)
    for epoch in range(5):
        model.train()
        torch.accelerator.synchronize()
        began = time.perf_counter()
        for step, (inputs, labels) in enumerate(train_loader):
            inputs = inputs.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            if step % 100 == 0:
                print(loss.item())
        torch.accelerator.synchronize()
        print(time.perf_counter() - began)
        model.eval()
        correct = 0
        with torch.inference_mode():
            for inputs, labels in test_loader:
                outputs = model(inputs.to(device))
                correct += (outputs.argmax(1) == labels.to(device)).sum()

if __name__ == "__main__":
    main(*sets())
"""
ADDED = "total += loss.detach()"
WITHOUT_ZERO_GRAD = "            optimizer.zero_grad()\n -> "
SYNCHRONIZE = "        torch.accelerator.synchronize()\n -> "


def changed(*changes: str) -> list[tuple[Problem, str]]:
    """What is found where each "old -> new" was changed in the right script, and where.

    The line is as it stands in the changed script.
    """
    text = RIGHT
    for change in changes:
        old, new = change.split(" -> ")
        assert old in text
        text = text.replace(old, new)
    lines = text.splitlines()
    return [
        (problem, lines[problem.line - 1].strip()) for problem in check(text).problems
    ]


def slugs(*changes: str) -> list[tuple[str, str]]:
    """The mistake of each problem, and how sure it is."""
    return [(problem.slug, problem.sureness) for problem, _ in changed(*changes)]


def slugs_in(text: str) -> list[str]:
    return [problem.slug for problem in check(text).problems]


def test_the_right_script_is_not_blamed():
    assert changed() == []


def test_each_finding_leads_to_a_mistake_that_there_is():
    changes = ".to(device) -> .cuda()", ", map_location=device -> ", WITHOUT_ZERO_GRAD
    blamed = [slug for slug, _ in slugs(*changes)]
    assert blamed == ["cuda_hard_coded", "cuda_checkpoint", "no_zero_grad"]
    assert set(blamed) <= set(BY_SLUG)


MOVES_INPUTS = "            inputs = inputs.to(device)\n -> "
MOVES_LABELS = "            labels = labels.to(device)\n -> "


def test_a_batch_that_stays_on_the_cpu_is_found_by_reading():
    (data,) = changed(MOVES_INPUTS)
    assert data[0].slug == "data_not_moved"
    assert data[1] == "outputs = model(inputs)"
    (labels,) = changed(MOVES_LABELS)
    assert labels[0].slug == "labels_not_moved"
    assert labels[1] == "loss = criterion(outputs, labels)"
    # Both are missing: the first error comes first.
    assert slugs(MOVES_INPUTS, MOVES_LABELS) == [("data_not_moved", "likely")]
    (evaluation,) = changed("model(inputs.to(device)) -> model(inputs)")
    assert evaluation[1] == "outputs = model(inputs)"


IN_A_FUNCTION = """\
device = "cuda" if torch.cuda.is_available() else "cpu"
train_loader = DataLoader(train_set, batch_size=64)
network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).to(device)

def train(loader, model, loss_fn, optimizer):
    model.train()
    for images, labels in loader:
        loss = loss_fn(model(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

train(train_loader, network, nn.CrossEntropyLoss(), Adam(network.parameters()))
"""


def test_a_batch_that_stays_on_the_cpu_is_found_in_a_function():
    (problem,) = check(IN_A_FUNCTION).problems
    assert (problem.slug, problem.line) == ("data_not_moved", 8)
    moves = IN_A_FUNCTION.replace("model(images)", "model(images.to(device))")
    assert slugs_in(moves) == []
    assert slugs_in(IN_A_FUNCTION.replace(".to(device)", "")) == []


@pytest.mark.parametrize(
    "moves_elsewhere",
    [
        "model = model.to(device) -> pass",  # all on the CPU
        "model = Net() -> model, optimizer = accelerator.prepare(Net(), optimizer)",
        "batch_size=64, num_workers=2 -> collate_fn=lambda b: stack(b).to(device)",
        "(train_set, batch -> (Cached(train_set, device), batch",
        "enumerate(train_loader) -> enumerate(prefetch(train_loader))",
        "optimizer.zero_grad() -> inputs, labels = both(device); opt.zero_grad()",
        "model = Net() -> torch.set_default_device(device); model = Net()",
        "DataLoader(train_set, batch_size=64, num -> batches(train_set, b=64, num",
    ],
)
def test_a_batch_that_may_be_moved_elsewhere_is_not_blamed(moves_elsewhere):
    assert slugs(MOVES_INPUTS, MOVES_LABELS, moves_elsewhere) == []


def test_a_checkpoint_that_is_loaded_where_it_was_is_pointed_at():
    assert slugs(", map_location=device -> ") == [("cuda_checkpoint", "look")]
    assert slugs_in('a = torch.load(f, "cpu")\nb = torch.load(f, **kwargs)') == []
    (both,) = check("a = torch.load(f)\nb = torch.load(g)").problems
    assert "2 times" in both.say


def test_cuda_in_the_script_is_pointed_at():
    assert slugs("model.to(device) -> model.cuda()") == [("cuda_hard_coded", "look")]
    checked = "if torch.cuda.is_available():\n    x = x.cuda()\n"
    chosen = 'device = torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    assert slugs_in(checked) == slugs_in(chosen) == []
    for line in (
        'device = torch.device("cuda:0")',
        'device = "cuda"',
        'x = torch.rand(3, device="cuda")',
    ):
        assert slugs_in(line) == ["cuda_hard_coded"]
    either = 'device = "cpu"\nif torch.cuda.is_available():\n    device = "cuda"'
    first = 'device = torch.device("cuda")\n'
    second = 'device = torch.device("cpu")'
    later = f"{first}if not torch.cuda.is_available():\n    {second}"
    tried = f'try:\n    x.to("cuda")\nexcept RuntimeError:\n    {second}'
    for text in (either, later, tried, 'name = "cuda"'):
        assert slugs_in(text) == []
    assert slugs_in(f"{first}if verbose:\n    {second}") == ["cuda_hard_coded"]


def test_loading_whatever_is_in_a_file_is_pointed_at():
    allowed = "map_location=device -> map_location=device, weights_only=False"
    assert slugs(allowed) == [("pickle_refused", "look")]
    assert "weights_only=False" in changed(allowed)[0][1]
    assert slugs(allowed.replace("False", "True")) == []
    assert slugs_in('x = json.load(f, "cpu", weights_only=False)') == []


def test_a_missing_zero_grad_is_found():
    assert slugs(WITHOUT_ZERO_GRAD) == [("no_zero_grad", "sure")]
    assert changed(WITHOUT_ZERO_GRAD)[0][1] == "optimizer.step()"
    for other in ("model.zero_grad()", "for p in ps: p.grad = None"):
        assert slugs(f"optimizer.zero_grad() -> {other}") == []
    elsewhere = "if __name__ -> def other(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(WITHOUT_ZERO_GRAD, elsewhere) == [("no_zero_grad", "likely")]
    helped = "optimizer.zero_grad() -> clear(optimizer)"
    helper = "if __name__ -> def clear(o):\n    o.zero_grad()\n\nif __name__"
    assert slugs(helped, helper) == []


def test_a_clock_without_synchronize_is_found():
    quiet = "print(loss.item()) -> pass"
    assert slugs(SYNCHRONIZE, quiet) == [("timing_unsynchronized", "likely")]
    assert slugs(quiet) == []
    waits = f"{ADDED} -> total += loss.item()"
    assert slugs(SYNCHRONIZE, waits) == []


@pytest.mark.parametrize(
    ("waits", "found"), [("pass", 1), ("x.cpu()", 0), ("torch.cuda.synchronize()", 0)]
)
def test_a_clock_counts_what_the_functions_between_its_readings_do(waits, found):
    text = """
import time, torch
model = make().to("cuda")
model.eval()
def wait(x):
    {waits}
def ask(x):
    x = model(x)
    wait(x)
def unused(x):
    return x.item()
t = time.time()
for x in xs:
    print(time.time() - t)
    ask(x)
"""
    slugs = [problem.slug for problem in check(text.format(waits=waits)).problems]
    assert slugs.count("timing_unsynchronized") == found


def test_a_clock_around_other_work_is_not_blamed():
    text = "device = 'mps'\nt = time.time()\nread(f)\nprint(time.time() - t)"
    assert check(text).problems == ()


def test_workers_without_a_guard_are_found():
    loop = "for x, y in DataLoader(data, num_workers=2):\n    f(x).backward()\n"
    (problem,) = check(loop).problems
    assert (problem.line, problem.sureness) == (1, "likely")
    assert "__main__" in problem.say
    assert check(f"!pip install torch\n{loop}").problems == ()
    assert len(check(f"{loop}    print('%d'\n        % 3)").problems) == 1
    assert check(loop.replace("=2", "=0")).problems == ()
    inside = loop.replace("\n", "\n    ")
    assert check(f"def train():\n    {inside}").problems == ()
    called = RIGHT.replace('if __name__ == "__main__":\n    main', "main")
    assert [problem.line for problem in check(called).problems] == [18]
