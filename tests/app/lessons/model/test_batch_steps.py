import ast
import math

import pytest
import torch

from core import loops, models
from core.data import datasets, feeds
from core.lessons.model import batch_steps
from core.ui.source import source

pytestmark = pytest.mark.usefixtures("one_thread")
MOVE, ZERO, FORWARD, LOSS, BACKWARD, STEP = range(6)


@pytest.fixture(scope="module")
def second():
    """The second batch: there are gradients from the first."""
    return batch_steps.inspect_batch("sprites", "ann", "cpu", 0, 2)


def statements(address: str) -> list[str]:
    """The calls and assignments of a function, as text, without what it yields."""
    tree = ast.parse(source(address))
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    ]


def test_the_steps_are_those_of_the_training_loop():
    walked = statements("core.lessons.model.batch_steps:walk")
    trained = statements("core.loops:train_epoch")
    assert len(walked) == 7
    assert [statement for statement in trained if statement in walked] == walked


def test_each_step_changes_what_it_should(second):
    gradients = [set(stage.gradients.values()) for stage in second.stages]
    assert None not in gradients[MOVE]
    for stage in (ZERO, FORWARD, LOSS):
        assert gradients[stage] == {None}
    for stage in (BACKWARD, STEP):
        assert all(norm > 0 for norm in gradients[stage])
    for stage in second.stages[:STEP]:
        assert set(stage.moved.values()) == {0.0}
    assert all(distance > 0 for distance in second.stages[STEP].moved.values())


def test_the_memories_hold_what_was_made(second):
    sizes = [
        {group.name: group.bytes for group in stage.groups} for stage in second.stages
    ]
    assert sizes[MOVE]["inputs"] == 64 * 28 * 28
    for stage in (ZERO, FORWARD, LOSS):
        assert "gradients" not in sizes[stage]
    assert sizes[BACKWARD]["gradients"] == sizes[BACKWARD]["model"]
    assert sizes[STEP]["optimizer state"] == 2 * sizes[STEP]["model"]
    assert "loss" in sizes[LOSS].keys() - sizes[FORWARD].keys()


def test_what_is_shown_of_the_first_images_belongs_together(second):
    train = datasets.load("sprites").train
    for image, label in zip(second.images, second.labels, strict=True):
        equal = (train.images[:, 0] == torch.from_numpy(image)).all(dim=(1, 2))
        assert label in train.labels[equal.nonzero()[:, 0]]
    for row, logits in zip(second.probabilities, second.logits, strict=True):
        assert row.sum() == pytest.approx(1, abs=1e-5)
        assert logits.argmax() == row.argmax()
    assert second.stages[LOSS].tensors[0].mean == pytest.approx(math.log(10), abs=1.5)


@pytest.mark.sim
@pytest.mark.parametrize("model", ["ann", "cnn"])
def test_a_batch_on_the_simulated_accelerator(model):
    simulated, on_cpu = (
        batch_steps.inspect_batch("sprites", model, device, 0, 3)
        for device in ("sim", "cpu")
    )
    assert (simulated.logits == on_cpu.logits).all()
    assert [stage.moved for stage in simulated.stages] == [
        stage.moved for stage in on_cpu.stages
    ]
    groups = [
        {group.name: group for group in stage.groups} for stage in simulated.stages
    ]
    batch = groups[MOVE]["inputs"].bytes + groups[MOVE]["targets"].bytes
    move, *others = (stage.crossed for stage in simulated.stages)
    assert (move.copies, move.bytes, move.waits) == (2, batch, 2)
    assert {(crossing.copies, crossing.waits) for crossing in others} == {(0, 0)}
    activations = [step for step in range(6) if "activations" in groups[step]]
    assert activations == [FORWARD, LOSS]
    assert groups[LOSS]["activations"].bytes > groups[MOVE]["inputs"].bytes
    assert {group.device for group in groups[STEP].values()} == {"sim:0", "cpu"}


def test_batches_follow_each_other_as_in_training():
    size = batch_steps.BATCH_SIZE
    split = datasets.load("sprites").train.first(size * batch_steps.MOST_BATCHES)
    device = torch.device("cpu")
    torch.manual_seed(0)
    model = models.build("cnn")
    optimizer = torch.optim.AdamW(model.parameters())
    feed = feeds.make("memory", split, size, device, 0)
    criterion = torch.nn.CrossEntropyLoss()
    losses = loops.train_epoch(model, feed, criterion, optimizer, device)
    trained = [next(losses).item() for _ in range(3)]  # dropout draws on torch's seed
    for number, loss in enumerate(trained, 1):
        batch = batch_steps.inspect_batch("sprites", "cnn", "cpu", 0, number)
        assert batch.stages[LOSS].tensors[0].mean == loss


def test_adamw_moves_by_the_learning_rate_in_its_first_step():
    first, tenth = (
        batch_steps.inspect_batch("sprites", "ann", "cpu", 0, number)
        .stages[-1]
        .moved["layers.5.bias"]
        / 10**0.5
        for number in (1, 10)
    )
    assert 0.9e-3 < first < 1.1e-3
    assert tenth < 0.6 * first
