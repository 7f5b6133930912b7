"""What `.to(device)` does, and what a step does where it is forgotten."""

from itertools import chain, combinations

import pytest
import torch

from core import models
from core.devices import other_than_cpu
from core.errors import ExplainedError
from core.lessons.model import model_to
from core.lessons.model.model_result import Forgotten
from core.ui.source import source

MOVES = ("model", "inputs", "labels", "loss")
FORWARD, LOSS = "outputs = model(inputs)", "loss = criterion(outputs, labels)"
HERE = other_than_cpu()
DEVICE = HERE.type if HERE else "meta"


@pytest.mark.parametrize("name", models.MODELS)
def test_every_parameter_and_buffer_is_moved(name):
    moved = model_to.move(name, "meta")
    state = models.build(name).state_dict()
    assert [each.name for each in moved.tensors] == list(state)
    assert {(each.before, each.after) for each in moved.tensors} == {("cpu", "meta")}
    assert sum(each.bytes for each in moved.tensors) == sum(
        tensor.numel() * tensor.element_size() for tensor in state.values()
    )


def test_buffers_are_told_from_parameters():
    kinds = {each.name: each.kind for each in model_to.move("cnn", "cpu").tensors}
    assert kinds["layers.0.2.running_mean"] == "buffer"
    assert kinds["layers.0.2.weight"] == "parameter"
    assert {e.kind for e in model_to.move("ann", "cpu").tensors} == {"parameter"}


def test_a_tensor_is_copied_and_a_module_is_moved_in_place():
    found = model_to.tried("meta")
    assert found["copy_of_a_tensor"]["x.device"] == "cpu"
    assert found["copy_of_a_tensor"]["y is x"] == "False"
    assert found["module_in_place"]["moved is model"] == "True"
    assert found["module_in_place"]["model.weight.device"] == "meta"


def test_a_module_moves_its_parameters_and_buffers_and_nothing_else():
    found = model_to.tried("meta")["what_a_module_moves"]
    places = [found[f"module.{name}.device"] for name in ("scale", "mean", "note")]
    assert places == ["meta", "meta", "cpu"]
    assert found["list(module.state_dict())"] == "['scale', 'mean']"


def test_an_optimizer_is_found_out_not_asserted():
    findings = {
        (each.target, each.when): each for each in model_to.optimizer_findings("cpu")
    }
    assert len(findings) == 6
    for (target, when), each in findings.items():
        if when == "after":
            assert each.holds_the_parameters
            assert not each.error
            assert each.weights_changed is (None if target == "meta" else True)


def test_an_optimizer_that_lost_its_parameters_is_noticed():
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        finding = model_to.find_out(torch.float64, "before")
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert not finding.holds_the_parameters
    assert finding.weights_changed is False


def test_each_repeat_of_the_timing_moves_a_model(monkeypatch):
    built = []

    def build(name):
        built.append(models.MODELS[name]())
        return built[-1]

    monkeypatch.setattr(model_to.models, "build", build)
    timed = model_to.time_move("ann", "meta")
    assert len(timed.seconds) == model_to.REPEATS
    assert all(next(model.parameters()).is_meta for model in built)
    assert len(built) == model_to.REPEATS + 1


def test_a_device_that_is_not_there_is_a_sentence():
    with pytest.raises(ExplainedError, match="no tpu device"):
        model_to.move("ann", "tpu")


@pytest.mark.gpu
def test_a_move_to_the_accelerator_takes_its_memory():
    device = str(torch.accelerator.current_accelerator())
    moved = model_to.move("ann", device)
    grown = moved.allocated_after - moved.allocated_before
    assert grown >= sum(each.bytes for each in moved.tensors)


@pytest.mark.parametrize(
    ("forgotten_move", "line"),
    [("model", FORWARD), ("inputs", FORWARD), ("labels", LOSS), ("loss", LOSS)],
)
def test_a_forgotten_move_fails_where_two_devices_meet(
    forgotten_move: str, line: str
) -> None:
    moved = [move for move in MOVES if move != forgotten_move]
    end = model_to.attempt(DEVICE, moved)
    assert "device" in end.error
    assert end.line is not None
    lines = source("core.lessons.model.model_to:step").splitlines()
    assert lines[end.line - 1].strip() == line


def test_all_or_none_work_and_nothing_between() -> None:
    some = chain.from_iterable(combinations(MOVES, n) for n in range(1, 4))
    assert all(model_to.attempt(DEVICE, moved).error for moved in some)
    for moved in ((), MOVES):
        assert model_to.attempt(DEVICE, moved) == Forgotten()
        assert model_to.attempt("cpu", moved) == Forgotten()
