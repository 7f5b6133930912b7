"""What can go wrong really goes wrong, and does no harm."""

import pytest
import torch

from core import models, state_dict
from core.checkpoints import dangers, round_trip
from core.config import IMAGE_MODELS


def made(model: str) -> bytes:
    return state_dict.save(models.build(model))


def test_the_payload_is_refused() -> None:
    """The safe load names the function that would be called, and no file appears."""
    found = dangers.pickle_is_a_program()
    assert "io.open" in found.message
    assert "does not exist" in found.outcome
    assert "GLOBAL" in found.listing
    assert "REDUCE" in found.listing
    assert "\x1b" not in found.message


def test_a_payload_that_is_not_refused_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If torch ever opened the payload, the demonstration would say so."""
    monkeypatch.setattr(dangers.sandbox, "call", lambda *_: "")
    with pytest.raises(dangers.ExplainedError, match="did not refuse"):
        dangers.pickle_is_a_program()


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_a_cuda_file_needs_map_location(model: str) -> None:
    """The file is a real one that asks for CUDA: refused, then loaded bit for bit."""
    found = dangers.cuda_on_cpu(made(model), model)
    assert "CUDA" in found.message
    assert f"all {len(models.build(model).state_dict())} tensors" in found.right
    file = dangers.saved_from_cuda(made(model), "cuda:1")
    assert {each.device for each in round_trip.inspect(file)} == {"cuda:1"}


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_another_architecture_is_refused(model: str) -> None:
    """Strictly, PyTorch lists what differs; without strict it leaves all out."""
    found = dangers.wrong_architecture(made(model), model)
    assert "Missing key(s)" in found.message
    assert "Unexpected key(s)" in found.message
    count = len(models.build(model).state_dict())
    assert f"leaves {count} of {count} tensors out" in found.right


def test_shown_messages_are_torchs_own() -> None:
    """A refusal is the exception's class and text, and nothing where there is none."""
    assert dangers._refusal(lambda: None) == ""
    said = dangers._refusal(lambda: torch.zeros(2).reshape(3))
    assert said.startswith("RuntimeError: shape '[3]' is invalid")
