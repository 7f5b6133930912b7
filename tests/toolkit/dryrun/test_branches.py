import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun.report import DEVICE_ERROR, NOT_SIMULATED, OK

pytestmark = pytest.mark.usefixtures("unhurried")

# Line 11 fails on a GPU. The batches are so large that a loop ends after some fifteen
# steps.
TRAINING = """
import torch
net = torch.nn.Linear(512, 8).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def train(x):
    optimizer.zero_grad()
    net(x.cuda()).mean().backward()
    optimizer.step()
def evaluate():
    with torch.no_grad():
        net(torch.rand(2, 512))
batch = torch.rand(16384, 512)
losses = []
step = 0
"""
NOW_AND_THEN = {
    "in a later turn of the loop": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i % 300 == 299:
        evaluate()
""",
    "in a later turn, under two conditions": """
while step < 9999:
    if step % 1000 == 0 and step > 1:
        evaluate()
    train(batch)
    step += 1
""",
    "in a later epoch": """
for epoch in range(3):
    for x in [batch] * 200:
        train(x)
        step += 1
        if step % 500 == 0:
            evaluate()
""",
    "in a method": """
class Trainer:
    def __init__(self): self.steps = 0
    def step(self, x):
        train(x)
        self.steps += 1
        if self.steps % 300: return
        evaluate()
trainer = Trainer()
for x in [batch] * 400: trainer.step(x)
""",
    "where a function says so": """
def is_due(step, every, rows): return step % every < rows and step != 0
while step < 9999:
    train(batch)
    step += 1
    if is_due(step, 1000, 1):
        evaluate()
""",
    "in a part that itself runs only now and then": """
for i, x in enumerate([batch] * 4000):
    train(x)
    if i % 300 == 299:
        losses.append(i)
        if i % 900 == 899:
            evaluate()
""",
    "in a part of a part, over several epochs": """
for epoch in range(1000):
    for x in [batch] * 3:
        train(x)
        step += 1
        if step % 500 == 0:
            losses.append(step)
            if step % 2000 == 0:
                evaluate()
""",
    "in a part that is left at most times": """
for i, x in enumerate([batch] * 4000):
    train(x)
    if not i % 4:
        losses.append(i)
    elif i % 3 == 0:
        losses.append(i)
        if i % 1003 != 1002: continue
        evaluate()
""",
    "in one of two parts that never come together": """
for i, x in enumerate([batch] * 4000):
    train(x)
    if i % 300 == 299: losses.append(i)
    elif i % 200 == 198: evaluate()
""",
    "in a later phase": """
phases = {"train": [batch] * 60, "val": [batch] * 2}
for epoch in range(3):
    for phase, batches in phases.items():
        for x in batches:
            if phase == "train":
                train(x)
        if phase == "val":
            evaluate()
""",
    "in a turn that ends the loop": """
while True:
    train(batch)
    step += 1
    if step >= 5000:
        evaluate()
        break
""",
    "after a comparison for the other turns": """
while step < 9999:
    train(batch)
    step += 1
    is_due = step % 1000 == 0
    if not is_due:
        continue
    evaluate()
""",
}
# Line 7 meets a model that a branch has left on the CPU.
LEFT_BEHIND = {
    "in a part of a part": """
for i in range(4000):
    train(batch)
    if i % 3 == 0:
        losses.append(i)
        if i % 900 == 0 and i > 0:
            net.cpu()
""",
    "in a range": """
for epoch in range(200):
    train(batch)
    if (epoch + 1) % 120 == 0:
        net.cpu()
""",
    "by identity": """
for epoch in range(200):
    train(batch)
    if epoch % 150 is 0 and epoch > 0:
        net.cpu()
""",
    "in an endless loop": """
while True:
    train(batch)
    step += 1
    if step % 1000 == 0:
        net.cpu()
    if step > 4000:
        break
""",
    "in a list": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i == 300:
        net.cpu()
""",
}
# No line on the GPU meets the model after that.
LEFT_AT_LAST = {
    "the last turn of a range": """
for epoch in range(200):
    train(batch)
    if epoch == 199:
        net.cpu()
evaluate()
""",
    "the last turn of a list": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i == 399:
        net.cpu()
evaluate()
""",
    "from a certain turn on": """
while step < 4000:
    step += 1
    if step < 2000:
        train(batch)
    else:
        net.cpu()
        evaluate()
""",
}
NEVER = {
    "the loop is too short": """
for i, x in enumerate([batch] * 200):
    train(x)
    if i % 300 == 299:
        evaluate()
""",
    "two conditions that never come together": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i % 300 == 0 and i < 99 and i > 0:
        evaluate()
""",
    "each epoch is too short for two conditions": """
for epoch in range(90):
    for i, x in enumerate([batch] * 4):
        train(x)
        if i % 50 == 0 and i > 0:
            evaluate()
""",
    "two conditions, one in the other, that never come together": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i % 300 == 299:
        losses.append(i)
        if i % 50 == 0:
            evaluate()
""",
    "a part that comes no more": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i < 5:
        losses.append(i)
        if i % 300 == 299:
            evaluate()
""",
    "each epoch is too short": """
for epoch in range(90):
    for i, x in enumerate([batch] * 4):
        train(x)
        if i % 50 == 49:
            evaluate()
""",
    "the number doesn't grow": """
for x in [batch] * 400:
    train(x)
    if x.ndim % 2 == 1:
        evaluate()
""",
    "the branch is an error": """
for i, x in enumerate([batch] * 400):
    train(x)
    if i == 300:
        raise RuntimeError
""",
}


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        *(pytest.param(loop, 11, id=name) for name, loop in NOW_AND_THEN.items()),
        *(pytest.param(loop, 7, id=name) for name, loop in LEFT_BEHIND.items()),
    ],
)
def test_what_a_loop_runs_only_now_and_then_and_leaves_behind(
    loop: str, line: int
) -> None:
    report = dry_run(TRAINING + loop)
    assert report.status == DEVICE_ERROR
    assert report.failure
    assert report.failure.line
    assert report.failure.line.number == line
    assert report.steps < 100


@pytest.mark.parametrize("loop", NEVER.values(), ids=NEVER)
def test_what_a_loop_never_runs(loop: str) -> None:
    assert dry_run(TRAINING + loop).status == OK


def test_an_evaluation_with_autograd_before_the_last_turn() -> None:
    loop = """
for i, x in enumerate([batch] * 400):
    train(x)
    if i % 300 == 299:
        net(x.cuda())
"""
    (remark,) = dry_run(TRAINING + loop).remarks
    assert remark.line.number == 19


@pytest.mark.parametrize("loop", LEFT_AT_LAST.values(), ids=LEFT_AT_LAST)
def test_what_a_branch_leaves_behind_at_last(loop: str) -> None:
    assert dry_run(TRAINING + loop).status == OK


def test_which_lines_did_not_run() -> None:
    loop = """
for i, x in enumerate([batch] * 400):
    train(x)
    if i % 10 == 0 and x.sum() < 0:
        net.half()
        evaluate()
    elif x.sum() < 0:
        print(i)
    else:
        losses.append(i)
"""
    *_, note = dry_run(TRAINING + loop).notes
    assert "lines 19 to 20" in note
    assert not any(f"line {number}" in note for number in range(21, 25))


def test_a_script_that_fails_after_a_condition_was_changed() -> None:
    loop = """
for i, x in enumerate([batch] * 400):
    train(x)
    losses.append(i)
    if i % 300 == 299:
        losses[299]
"""
    report = dry_run(TRAINING + loop)
    assert (report.status, report.fails_after_visit) == (NOT_SIMULATED, True)
    assert dry_run(TRAINING + loop, visits=False).status == OK
