from itertools import chain, combinations

import pytest
import torch

from core import models
from core.devices import other_than_cpu
from core.lessons.model import model_to
from core.lessons.model.model_result import Forgotten

MOVES = ("model", "inputs", "labels", "loss")
HERE = other_than_cpu()
DEVICE = HERE.type if HERE else ""
THERE = f"{DEVICE}:0"


@pytest.mark.gpu
@pytest.mark.parametrize("name", models.MODELS)
def test_every_parameter_and_buffer_is_moved_and_takes_memory(name):
    moved = model_to.move(name, DEVICE)
    state = models.build(name).state_dict()
    assert [tensor.name for tensor in moved.tensors] == list(state)
    assert {(tensor.before, tensor.after) for tensor in moved.tensors} == {
        ("cpu", THERE)
    }
    size = sum(tensor.bytes for tensor in moved.tensors)
    assert size == sum(tensor.nbytes for tensor in state.values())
    assert moved.allocated_after - moved.allocated_before >= size
    if moved.environment.is_simulated:
        assert moved.crossed.copies == moved.crossed.waits == len(moved.tensors)
        assert moved.crossed.bytes == size


def test_buffers_are_distinguished_from_parameters():
    kinds = {tensor.name: tensor.kind for tensor in model_to.move("cnn", "cpu").tensors}
    assert kinds["layers.0.2.running_mean"] == "buffer"
    assert kinds["layers.0.2.weight"] == "parameter"
    assert {e.kind for e in model_to.move("ann", "cpu").tensors} == {"parameter"}


@pytest.mark.gpu
def test_a_tensor_is_copied_and_a_module_is_moved_in_place():
    values = model_to.tried(DEVICE)
    assert values["copy_of_a_tensor"]["x.device"] == "cpu"
    assert values["copy_of_a_tensor"]["y is x"] == "False"
    assert values["module_in_place"]["moved is model"] == "True"
    assert values["module_in_place"]["next(model.parameters()).device"] == THERE
    # Only parameters and buffers are moved.
    values = values["what_a_module_moves"]
    places = [values[f"module.{name}.device"] for name in ("scale", "mean", "note")]
    assert places == [THERE, THERE, "cpu"]
    assert values["list(module.state_dict())"] == "['scale', 'mean']"


@pytest.mark.parametrize("device", ["cpu", pytest.param(DEVICE, marks=pytest.mark.gpu)])
def test_an_optimizer_is_found_out_not_asserted(device):
    findings = {
        finding.when: finding for finding in model_to.optimizer_findings(device)
    }
    assert all(finding.holds_the_parameters for finding in findings.values())
    works = {when: not findings[when].error for when in findings}
    assert works == {"after": True, "before": True, "used": False}
    assert all(findings[when].weights_changed for when in findings if works[when])


def test_an_optimizer_that_lost_its_parameters_is_noticed():
    future = torch.__future__
    future.set_overwrite_module_params_on_conversion(True)
    try:
        finding = model_to.find_out(torch.float64, "before")
    finally:
        future.set_overwrite_module_params_on_conversion(False)
    assert not finding.holds_the_parameters
    assert finding.weights_changed is False


def test_each_repeat_of_the_timing_moves_a_model(monkeypatch):
    built = []

    def build(name):
        built.append(models.MODELS[name]())
        return built[-1]

    monkeypatch.setattr(model_to.models, "build", build)
    timed = model_to.time_move("ann", "cpu")
    assert len(timed.seconds) == model_to.REPEATS
    assert len(built) == model_to.REPEATS + 1


@pytest.mark.gpu
def test_all_or_none_work_and_nothing_between() -> None:
    some = chain.from_iterable(combinations(MOVES, n) for n in range(1, 4))
    assert all(model_to.attempt(DEVICE, moved).error for moved in some)
    for moved in ((), MOVES):
        assert model_to.attempt(DEVICE, moved) == Forgotten()
        assert model_to.attempt("cpu", moved) == Forgotten()
