import pickle
from pathlib import Path

import pytest
import torch

from core import devices, models, state_dict

CPU = torch.device("cpu")


@pytest.mark.parametrize("model", ["ann", "cnn", "simple"])
def test_weights_come_back_bit_by_bit(model: str) -> None:
    built = models.build(model)
    again = state_dict.load(state_dict.save(built), model, CPU)
    assert built.state_dict().keys() == again.state_dict().keys()
    for name, tensor in built.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])


def test_only_numbers_with_a_point_are_cast() -> None:
    file = state_dict.save(models.build("cnn"), dtype=torch.float16)
    dtypes = {tensor.dtype for tensor in state_dict.unpack(file).values()}
    assert dtypes == {torch.float16, torch.int64}


def test_a_program_in_a_file_is_not_run(tmp_path: Path) -> None:
    target = tmp_path / "written"

    class Program:
        def __reduce__(self):
            return Path.touch, (target,)

    with pytest.raises(pickle.UnpicklingError):
        state_dict.unpack(state_dict.pack({"weight": Program()}))
    assert not target.exists()


@pytest.mark.gpu
def test_a_file_from_the_accelerator_loads_anywhere() -> None:
    there = devices.resolve("auto")
    model = models.build("ann").to(there)
    for device in (CPU, there):
        file = state_dict.save(model, device)
        for target in (CPU, there):
            again = state_dict.load(file, "ann", target)
            for ours, theirs in zip(
                model.parameters(), again.parameters(), strict=True
            ):
                assert torch.equal(ours.cpu(), theirs.cpu())
