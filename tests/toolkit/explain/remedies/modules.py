"""Modules, optimizers, datasets, and arrays that are used in a way they don't allow."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


def loader_not_list(device):
    loader = DataLoader([(torch.ones(3), 1), (torch.ones(3), 0)], batch_size=2)
    inputs, labels = iter(loader).next()  # broken
    inputs, labels = next(iter(loader))  # fixed
    assert (inputs.shape, labels.tolist()) == ((2, 3), [1, 0])


def forward_missing(device):
    layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])
    x = torch.ones(1, 4)
    x = layers(x)  # broken
    for layer in layers:  # fixed
        x = layer(x)  # fixed
    assert x.shape == (1, 2)


def super_init(device):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()  # fixed
            self.layer = nn.Linear(4, 2)

    assert len([*Net().parameters()]) == 2


def forward_arguments(device):
    model, x = nn.Sequential(nn.ReLU()), torch.tensor([-1.0, 1])
    outputs = model(x, None)  # broken
    outputs = model(x)  # fixed
    assert outputs.tolist() == [0, 1]


def not_a_parameter(device):
    layer, value = nn.Linear(2, 1), torch.ones(1, 2)
    layer.weight = value  # broken
    layer.weight = nn.Parameter(value)  # fixed
    assert layer.weight.requires_grad


def optimizer_arguments(device):
    encoder, decoder = nn.Linear(2, 3), nn.Linear(3, 2)
    parameters = [encoder, decoder]  # broken
    parameters = [*encoder.parameters(), *decoder.parameters()]  # fixed
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    assert len(optimizer.param_groups[0]["params"]) == 4


def sequential_list(device):
    layers = [nn.Linear(2, 3), nn.Linear(3, 1)]
    model = nn.Sequential(layers)  # broken
    model = nn.Sequential(*layers)  # fixed
    assert model(torch.ones(1, 2)).shape == (1, 1)


def size_not_integer(device):
    width = 8
    layer = nn.Linear(width / 2, 10)  # broken
    layer = nn.Linear(width // 2, 10)  # fixed
    assert layer.weight.shape == (10, 4)


def split_lengths(device):
    dataset = range(9)
    lengths = [int(0.8 * len(dataset)), int(0.2 * len(dataset))]  # broken
    lengths = [0.8, 0.2]  # fixed
    train, test = torch.utils.data.random_split(dataset, lengths)
    assert len(train) + len(test) == 9


def dataset_methods(device):
    class Images(torch.utils.data.Dataset):
        paths = ("a", "b")

        def __len__(self):
            return len(self.paths)

        def _getitem_(self, i):
            return self.paths[i]

        __getitem__ = _getitem_  # fixed

    assert [*DataLoader(Images(), batch_size=None)] == ["a", "b"]


def normalize_channels(device):
    from torchvision import transforms

    image = torch.ones(1, 4, 4)
    normalize = transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))  # broken
    normalize = transforms.Normalize((0.5,), (0.5,))  # fixed
    assert normalize(image).sum() == 16


def list_of_arrays(device):
    arrays = [np.zeros(2), np.ones(2)]
    x = torch.tensor(arrays)  # broken
    x = torch.from_numpy(np.array(arrays))  # fixed
    assert x.sum() == 2


def copy_construct(device):
    x = torch.ones(2, requires_grad=True)
    y = torch.tensor(x)  # broken
    y = x.detach().clone()  # fixed
    assert y.tolist() == [1, 1]


def array_not_writable(device):
    array = np.ones(2)
    array.flags.writeable = False
    x = torch.from_numpy(array)  # broken
    x = torch.from_numpy(array.copy())  # fixed
    assert x.tolist() == [1, 1]


def topk_range(device):
    outputs = torch.tensor([[0.1, 0.7, 0.2]])
    _, indices = outputs.topk(5, dim=1)  # broken
    _, indices = outputs.topk(min(5, outputs.shape[1]), dim=1)  # fixed
    assert indices.tolist() == [[1, 2, 0]]


def unpack_shape(device):
    x = torch.ones(3, 8, 6)
    x = x.unsqueeze(0)  # fixed
    n, channels, height, width = x.shape
    assert (n, channels, height, width) == (1, 3, 8, 6)
