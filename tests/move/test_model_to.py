"""core.move.model_to: what `.to(device)` does."""

import pytest
import torch

from core import models
from core.errors import ExplainedError
from core.move import model_to


@pytest.mark.parametrize("name", models.MODELS)
def test_every_parameter_and_buffer_is_moved(name):
    """The table has the state_dict, tensor by tensor, first on the CPU, then there."""
    moved = model_to.move(name, "meta")
    state = models.build(name).state_dict()
    assert [each.name for each in moved.tensors] == list(state)
    assert {(each.before, each.after) for each in moved.tensors} == {("cpu", "meta")}
    assert sum(each.bytes for each in moved.tensors) == sum(
        tensor.numel() * tensor.element_size() for tensor in state.values()
    )


def test_buffers_are_told_from_parameters():
    """Batch norm's running statistics are buffers; the ANN has none."""
    kinds = {each.name: each.kind for each in model_to.move("cnn", "cpu").tensors}
    assert kinds["layers.0.2.running_mean"] == "buffer"
    assert kinds["layers.0.2.weight"] == "parameter"
    assert {e.kind for e in model_to.move("ann", "cpu").tensors} == {"parameter"}


def test_a_tensor_is_copied_and_a_module_is_moved_in_place():
    """What the page shows of the two: x stays, the module moves."""
    found = model_to.tried("meta")
    assert found["copy_of_a_tensor"]["x.device"] == "cpu"
    assert found["copy_of_a_tensor"]["y is x"] == "False"
    assert found["module_in_place"]["moved is model"] == "True"
    assert found["module_in_place"]["model.weight.device"] == "meta"


def test_a_module_moves_its_parameters_and_buffers_and_nothing_else():
    """Class weights are such a buffer; a tensor that is a mere attribute stays."""
    found = model_to.tried("meta")["what_a_module_moves"]
    places = [found[f"module.{name}.device"] for name in ("scale", "mean", "note")]
    assert places == ["meta", "meta", "cpu"]
    assert found["list(module.state_dict())"] == "['scale', 'mean']"
    loss = torch.nn.CrossEntropyLoss(weight=torch.ones(10))
    assert dict(loss.named_buffers()).keys() == {"weight"}
    assert not list(loss.parameters())


def test_an_optimizer_is_found_out_not_asserted():
    """Built after the move it always works; the findings of the others are torch's."""
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
    """Where torch replaces parameters in a move, a step leaves the weights alone."""
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        finding = model_to.find_out(torch.float64, "before")
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(False)
    assert not finding.holds_the_parameters
    assert finding.weights_changed is False


def test_each_repeat_of_the_timing_moves_a_model(monkeypatch):
    """One model is built for each repeat and for the warm-up, none is moved twice."""
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
    """Nobody is sent to a device that this machine does not have."""
    with pytest.raises(ExplainedError, match="no tpu device"):
        model_to.move("ann", "tpu")


@pytest.mark.gpu
def test_a_move_to_the_accelerator_takes_its_memory():
    """What is allocated on the device grows by the bytes of the model, at least."""
    device = str(torch.accelerator.current_accelerator())
    moved = model_to.move("ann", device)
    grown = moved.allocated_after - moved.allocated_before
    assert grown >= sum(each.bytes for each in moved.tensors)
