"""Files with weights, and the names and shapes in them."""

import copy
import io
import os
import pickle
import sys
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from unittest import mock

import torch
from torch import nn


class SaveInterruptedError(Exception):
    """Stands for a process that is killed while it saves."""


class Unfinished(io.FileIO):
    """A file whose writer is killed after `size` bytes."""

    size = 0

    def write(self, data):
        super().write(memoryview(data)[: self.size])
        raise SaveInterruptedError


def save(state, path, size=20):
    """Save `state`, but not all of it: the process ends after `size` bytes."""
    with Unfinished(path, "w") as file:
        file.size = size
        try:
            torch.save(state, file)
        except (SaveInterruptedError, RuntimeError):
            return False
    return True


def net(width=4):
    return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))


def cuda_checkpoint(device):
    state = nn.Linear(3, 2).state_dict()
    with mock.patch("torch.serialization.location_tag", return_value="cuda:0"):
        torch.save(state, "model.pt")
    state = torch.load("model.pt")  # broken
    state = torch.load("model.pt", map_location=device)  # fixed
    assert state["weight"].device.type == device.type


def module_prefix(device):
    torch.save(nn.DataParallel(net()).state_dict(), "model.pt")
    model = net()
    state = torch.load("model.pt")
    strip = torch.nn.modules.utils.consume_prefix_in_state_dict_if_present
    strip(state, "module.")  # fixed
    model.load_state_dict(state)
    assert torch.equal(model[0].weight, state["0.weight"].cpu())


def module_missing(device):
    model = nn.DataParallel(net())
    state = net().state_dict()
    model.load_state_dict(state)  # broken
    model.module.load_state_dict(state)  # fixed
    assert torch.equal(model.module[0].weight.cpu(), state["0.weight"])


def orig_mod_prefix(device):
    model = net()
    state = torch.compile(net()).state_dict()
    strip = torch.nn.modules.utils.consume_prefix_in_state_dict_if_present
    strip(state, "_orig_mod.")  # fixed
    model.load_state_dict(state)
    assert torch.equal(model[0].weight, state["0.weight"])


def orig_mod_missing(device):
    model = torch.compile(net())
    state = net().state_dict()
    model.load_state_dict(state)  # broken
    model._orig_mod.load_state_dict(state)  # fixed
    assert torch.equal(model._orig_mod[0].weight, state["0.weight"])


def wrong_architecture(device):
    state = net(width=4).state_dict()
    model = net(width=8)
    own = model.state_dict()  # fixed
    for key in list(state):  # fixed
        if key not in own or state[key].shape != own[key].shape:  # fixed
            del state[key]  # fixed
    model.load_state_dict(state)  # broken
    model.load_state_dict(state, strict=False)  # fixed
    assert torch.equal(model[2].bias, state["2.bias"])


def whole_checkpoint(device):
    model = net()
    checkpoint = {"model_state_dict": net().state_dict(), "epoch": 3}
    model.load_state_dict(checkpoint)  # broken
    model.load_state_dict(checkpoint["model_state_dict"])  # fixed
    assert torch.equal(model[0].weight, checkpoint["model_state_dict"]["0.weight"])


def pickle_refused(device):
    torch.save({"weight": torch.ones(2), "options": Namespace(lr=0.1)}, "model.pt")
    state = torch.load("model.pt")  # broken
    state = torch.load("model.pt", weights_only=False)  # fixed
    assert state["options"].lr == 0.1


class Activated(nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.activation = lambda x: x


def pickled_model(device):
    model = Activated()
    torch.save(model, "model.pt")  # broken
    torch.save(model.state_dict(), "model.pt")  # fixed
    state = torch.load("model.pt")
    assert torch.equal(state["weight"], model.weight)


def copied_object(device):
    model = Activated()
    model.draws = (x for x in [])
    copied = copy.deepcopy(model)  # broken
    copied = Activated()  # fixed
    copied.load_state_dict(model.state_dict())  # fixed
    assert torch.equal(copied.weight, model.weight)


def checkpoint_damaged(device):
    state = {"weight": torch.ones(2)}
    torch.save({"weight": torch.zeros(2)}, "model.pt")
    saved = save(state, "model.pt")  # broken
    saved = save(state, "new.pt")  # fixed
    if saved:
        os.replace("new.pt", "model.pt")
    state = torch.load("model.pt")
    assert state["weight"].tolist() == [0, 0]


def freed_storage(device):
    whole = torch.ones(3)
    part = whole.clone()
    part.untyped_storage().resize_(0)
    file = io.BytesIO()
    torch.save({"weight": part}, file)  # broken
    torch.save({"weight": whole}, file)  # fixed
    file.seek(0)
    assert torch.load(file)["weight"].tolist() == [1, 1, 1]


def checkpoint_empty(device):
    state = {"weight": torch.ones(2)}
    torch.save({"weight": torch.zeros(2)}, "model.pt")
    saved = save(state, "model.pt", 0)  # broken
    saved = save(state, "new.pt", 0)  # fixed
    if saved:
        os.replace("new.pt", "model.pt")
    state = torch.load("model.pt")
    assert state["weight"].tolist() == [0, 0]


def pickled_archive(device):
    import zipfile

    torch.save({"weight": torch.ones(2)}, "model.pt")
    with zipfile.ZipFile("model.pt") as archive:
        unpacked = archive.read("model/data.pkl")
    state = pickle.loads(unpacked)  # broken
    state = torch.load("model.pt")  # fixed
    assert state["weight"].tolist() == [1, 1]


def jit_load(device):
    import warnings

    model = nn.Linear(3, 2)
    torch.save(model.state_dict(), "model.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        state = torch.jit.load("model.pt").state_dict()  # broken
        state = torch.load("model.pt")  # fixed
    model.load_state_dict(state)
    assert torch.equal(state["bias"], model.bias)


def optimizer_checkpoint(device):
    optimizer = torch.optim.SGD(nn.Linear(3, 2).parameters(), lr=0.1)
    checkpoint = {"optimizer": optimizer.state_dict(), "epoch": 3}
    optimizer.load_state_dict(checkpoint)  # broken
    optimizer.load_state_dict(checkpoint["optimizer"])  # fixed
    assert optimizer.param_groups[0]["lr"] == 0.1


def class_missing(device):
    module = ModuleType("training")
    module.Net = type("Net", (nn.Linear,), {"__module__": "training"})
    sys.modules["training"] = module
    model = module.Net(3, 2)
    torch.save(model, "net.pt")
    torch.save(model.state_dict(), "state.pt")
    sys.modules["training"] = ModuleType("training")

    class Net(nn.Linear):
        pass

    loaded = torch.load("net.pt", weights_only=False)  # broken
    loaded = Net(3, 2)  # fixed
    loaded.load_state_dict(torch.load("state.pt"))  # fixed
    assert torch.equal(loaded.weight, model.weight)


def optimizer_groups(device):
    model = net()
    checkpoint = {
        "model": net().state_dict(),
        "optimizer": torch.optim.Adam(model[0].parameters()).state_dict(),
    }
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])  # broken
    model.load_state_dict(checkpoint["model"])  # fixed
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert len(optimizer.state) == 4


def state_dict_as_model(device):
    torch.save(nn.Linear(3, 2).state_dict(), "model.pt")
    model = torch.load("model.pt")  # broken
    model = nn.Linear(3, 2)  # fixed
    model.load_state_dict(torch.load("model.pt"))  # fixed
    model.eval()
    assert model(torch.ones(1, 3)).shape == (1, 2)


def checkpoint_key(device):
    torch.save(nn.Linear(3, 2).state_dict(), "model.pt")
    checkpoint = torch.load("model.pt")
    state = checkpoint["state_dict"]  # broken
    state = checkpoint.get("state_dict", checkpoint)  # fixed
    assert state["bias"].shape == (2,)


def folder_missing(device):
    path = Path("checkpoints/model.pt")
    path.parent.mkdir(parents=True, exist_ok=True)  # fixed
    torch.save(nn.Linear(3, 2).state_dict(), path)
    assert path.stat().st_size > 0


def initial_lr(device):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    for group in optimizer.param_groups:  # fixed
        group.setdefault("initial_lr", 0.1)  # fixed
    torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, last_epoch=5)
