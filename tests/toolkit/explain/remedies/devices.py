"""Tensors, modules, and random numbers on two devices."""

from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset


def two_devices(device):
    x = torch.ones(3)
    y = torch.ones(3, device=device)
    x = x.to(device)  # fixed
    assert (x + y).tolist() == [2, 2, 2]


def created_on_cpu(device):
    x = torch.ones(3, device=device)
    assert (x + (hidden := torch.ones(3))).tolist() == [2, 2, 2]  # broken
    hidden = torch.ones(3, device=x.device)  # fixed
    assert (x + hidden).tolist() == [2, 2, 2]


def accelerator_is_none(device):
    with patch.object(torch.accelerator, "current_accelerator", return_value=None):
        device = torch.accelerator.current_accelerator()  # broken
        device = torch.accelerator.current_accelerator() or torch.device("cpu")  # fixed
        assert device.type == "cpu"


def input_not_moved(device):
    model = nn.Linear(4, 2).to(device)
    inputs = torch.ones(8, 4)
    inputs = inputs.to(device)  # fixed
    outputs = model(inputs)
    assert outputs.shape == (8, 2)


def model_not_moved(device):
    model = nn.Linear(4, 2)
    inputs = torch.ones(8, 4).to(device)
    model.to(device)  # fixed
    outputs = model(inputs)
    assert outputs.device == inputs.device


def loss_not_moved(device):
    weights = torch.tensor([1.0, 2.0])
    outputs = torch.zeros(4, 2, device=device)
    labels = torch.tensor([0, 1, 1, 0], device=device)
    criterion = nn.CrossEntropyLoss(weight=weights)  # broken
    criterion = nn.CrossEntropyLoss(weight=weights).to(device)  # fixed
    loss = criterion(outputs, labels)
    torch.testing.assert_close(loss.item(), torch.tensor(2.0).log().item())


def labels_not_moved(device):
    outputs = torch.zeros(4, 2, device=device)
    labels = torch.tensor([0, 1, 1, 0])
    labels = labels.to(device)  # fixed
    loss = nn.functional.cross_entropy(outputs, labels)
    torch.testing.assert_close(loss.item(), torch.tensor(2.0).log().item())


def optimizer_before_move(device):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    saved = optimizer.state_dict()
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())  # fixed
    optimizer.load_state_dict(saved)  # fixed
    before = model.weight.detach().clone()
    model(torch.ones(2, 4, device=device)).sum().backward()
    optimizer.step()
    assert (model.weight < before).all()
    assert optimizer.state[model.weight]["step"] == 2


def lengths_on_cpu(device):
    inputs = torch.ones(2, 5, 3, device=device)
    lengths = torch.tensor([5, 2], device=device)
    lengths = lengths.flatten().cpu()  # fixed
    packed = pack_padded_sequence(inputs, lengths, batch_first=True)
    assert len(packed.data) == 7


def lengths_sorted(device):
    x, lengths = torch.ones(2, 5, 3), torch.tensor([2, 5])
    sort = {}  # broken
    sort = {"enforce_sorted": False}  # fixed
    packed = pack_padded_sequence(x, lengths, batch_first=True, **sort)
    assert len(packed.data) == 7


def generator_device(device):
    torch.set_default_device(device)
    dataset = TensorDataset(torch.arange(6))
    options = {}  # broken
    options = {"generator": torch.Generator(device).manual_seed(0)}  # fixed
    loader = DataLoader(dataset, shuffle=True, **options)
    assert sorted(item.item() for (item,) in loader) == [0, 1, 2, 3, 4, 5]


def invalid_device(device):
    device = torch.device(device.type, 5)  # broken
    device = torch.device(device.type, 0)  # fixed
    x = torch.ones(3).to(device)
    assert x.sum().item() == 3


def cuda_function_on_cpu(device):
    device = torch.device("cpu")
    torch.cuda.reset_peak_memory_stats(device)  # broken
    if device.type == "cuda":  # fixed
        torch.cuda.reset_peak_memory_stats(device)  # fixed
    assert torch.ones(2, device=device).sum() == 2


def device_string(device):
    device = torch.device("gpu")  # broken
    device = torch.device("cuda:0")  # fixed
    assert device.type == "cuda"


def batch_container(device):
    batch = [torch.ones(2, 3), torch.zeros(2)]
    inputs, labels = batch.to(device)  # broken
    inputs, labels = (x.to(device) for x in batch)  # fixed
    assert inputs.device == labels.device != torch.device("cpu")


def mps_not_found(device):
    accelerator = torch.accelerator.current_accelerator
    device = torch.device("mps")  # broken
    device = accelerator(check_available=True) or "cpu"  # fixed
    x = torch.ones(3, device=device)
    assert x.sum().item() == 3


def numpy_on_device(device):
    outputs = torch.ones(3, requires_grad=True).to(device)
    array = outputs.detach().numpy()  # broken
    array = outputs.detach().cpu().numpy()  # fixed
    assert array.sum() == 3
    joined = torch.stack([outputs, 4 * outputs]).detach()
    copied = joined.cpu().numpy()
    assert joined.sum().item() == np.sum(copied)
    assert joined.std(correction=0).item() == np.std(copied)
    assert joined.quantile(0.5).item() == np.median(copied)


def numpy_requires_grad(device):
    outputs = torch.ones(3, requires_grad=True) * 2
    array = outputs.numpy()  # broken
    array = outputs.detach().cpu().numpy()  # fixed
    assert array.sum() == 6


def already_pinned(device):
    dataset = TensorDataset(torch.arange(4.0, device=device))
    loader = DataLoader(dataset, batch_size=2, pin_memory=True)  # broken
    loader = DataLoader(dataset, batch_size=2, pin_memory=False)  # fixed
    assert [len(batch) for (batch,) in loader] == [2, 2]


def not_a_leaf(device):
    x = torch.zeros(3, requires_grad=True).to(device)  # broken
    x = torch.zeros(3, device=device, requires_grad=True)  # fixed
    optimizer = torch.optim.SGD([x], lr=1.0)
    x.sum().backward()
    optimizer.step()
    assert x.tolist() == [-1, -1, -1]


def meta_tensor(device):
    state = nn.Linear(4, 2).state_dict()
    with torch.device("meta"):
        model = nn.Linear(4, 2)
    model.load_state_dict(state, assign=True)  # fixed
    model.to(device)
    assert torch.equal(model.weight.cpu(), state["weight"])


def no_driver(device):
    accelerator = torch.accelerator.current_accelerator
    device = torch.device("cuda")  # broken
    device = accelerator(check_available=True) or "cpu"  # fixed
    x = torch.ones(3, device=device)
    assert x.sum().item() == 3


# A build of torch without CUDA has another message for the same mistake.
cpu_build = no_driver
if torch.version.cuda is None:
    del no_driver
else:
    del cpu_build
