import ast
import inspect

import torch

from core import devices
from core.jobs import child_process
from core.lessons.model import set_default_device


def test_what_is_shown_is_what_ran() -> None:
    (table,) = (
        node.value
        for node in ast.parse(inspect.getsource(set_default_device)).body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "expressions"
    )
    assert isinstance(table, ast.Dict)
    for text, function in zip(table.keys, table.values, strict=True):
        assert isinstance(text, ast.Constant)
        assert isinstance(function, ast.Lambda)
        assert ast.dump(ast.parse(text.value, mode="eval").body) == ast.dump(
            function.body
        )


def test_a_default_device_moves_what_is_new() -> None:
    comparison = child_process.call("core.lessons.model.set_default_device:compare")
    device = devices.other_than_cpu()
    assert device is not None
    assert comparison["device"] == device.type
    types = comparison["block"]["made"]
    assert types["torch.zeros(3)"] == comparison["device"]
    assert types["nn.Linear(3, 1).weight"] == comparison["device"]
    assert types["torch.from_numpy(array)"] == "cpu"
    assert types['torch.zeros(3, device="cpu")'] == "cpu"
    assert comparison["block"]["after"] == "cpu"
    assert comparison["setting"]["after"] == comparison["device"]
    assert len(comparison["cost"]) == 2
    assert min(comparison["cost"]) > 0


def test_a_shuffle_fails_on_its_own_generator_alone() -> None:
    assert set_default_device.shuffle() == ""
    assert set_default_device.shuffle(torch.Generator("cpu")) == ""
    device = devices.other_than_cpu()
    with torch.device(device):
        assert "generator" in set_default_device.shuffle()
        assert set_default_device.shuffle(torch.Generator(device)) == ""


def test_nothing_leaks_into_the_process_that_asks() -> None:
    set_default_device.compare()
    assert torch.zeros(1).device.type == "cpu"
