"""Loud mistakes (they raise errors): tensors on two devices, a missing GPU.

Here and in the other modules of this folder, a function has both halves of a mistake.
Lines with "# broken" are only in the broken half, and lines with "# fixed" are only in
the fixed half (core.halves). The page shows both side by side, so lines have at most 42
characters and no annotations. Names and reasons are in content/mistakes.toml, and
runner runs the mistakes.
"""

import torch
from torch import nn

from core.halves import define
from core.lessons.mistakes.examples.fixtures import ScaledLoss, batch
from core.models import ANN


def model_not_moved(device):
    model = ANN()  # broken
    model = ANN().to(device)  # fixed
    inputs, targets = batch()
    inputs = inputs.to(device)
    return model(inputs).mean()


def data_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    return model(inputs).mean()  # broken
    return model(inputs.to(device)).mean()  # fixed


def labels_not_moved(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch()
    inputs = inputs.to(device)
    targets = targets.to(device)  # fixed
    outputs = model(inputs)
    return criterion(outputs, targets)


def predictions_vs_labels(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    predictions = outputs.argmax(dim=1)
    targets = targets.to(device)  # fixed
    correct = predictions == targets
    return correct.sum()


def to_not_reassigned(device):
    model = ANN().to(device)
    inputs, targets = batch()
    inputs.to(device)  # broken
    inputs = inputs.to(device)  # fixed
    return model(inputs).mean()


def tensor_in_forward(device):
    class Noisy(ANN):
        def forward(self, x):
            noise = torch.rand(x.shape)  # broken
            noise = torch.rand_like(x)  # fixed
            return super().forward(x + noise)

    model = Noisy().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def layers_in_list(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 64)
            second = nn.Linear(64, 10)
            self.layers = [first, second]  # broken
            self.layers = nn.ModuleList(  # fixed
                [first, second],  # fixed
            )  # fixed

        def forward(self, x):
            x = x.flatten(1)
            for layer in self.layers:
                x = layer(x).relu()
            return x

    model = Stack().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def loss_not_moved(device):
    model = ANN().to(device)
    criterion = ScaledLoss()  # broken
    criterion = ScaledLoss().to(device)  # fixed
    inputs, targets = batch()
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    return criterion(outputs, targets)


def cuda_hard_coded(device):
    gpu = torch.accelerator  # fixed
    gpu = gpu.current_accelerator(  # fixed
        check_available=True  # fixed
    )  # fixed
    device = gpu or "cpu"  # fixed
    model = ANN().cuda()  # broken
    model = ANN().to(device)  # fixed
    inputs, targets = batch()
    return model(inputs.cuda()).mean()  # broken
    return model(inputs.to(device)).mean()  # fixed


def numpy_on_device(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    outputs = outputs.detach()  # broken
    outputs = outputs.detach().cpu()  # fixed
    return outputs.numpy().mean()


def numpy_requires_grad(device):
    model = ANN()
    inputs, targets = batch()
    outputs = model(inputs)  # broken
    outputs = model(inputs).detach()  # fixed
    return outputs.numpy().mean()


define(globals())
