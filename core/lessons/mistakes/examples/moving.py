"""Loud: two tensors on two devices, and devices that are not what the code expects.

`broken_<slug>(device)` raises, `fixed_<slug>(device)` does not. The two halves are read
side by side, each on half a screen: hence lines of at most 42 characters, and no
annotations; so it is in the modules beside this one. What each mistake is called and
why it is one stands in catalogue, what runs them in runner.
"""

import torch
from torch import nn

from core.lessons.mistakes.examples.fixtures import ScaledLoss, batch
from core.models import ANN


def broken_model_not_moved(device):
    model = ANN()
    inputs, targets = batch()
    inputs = inputs.to(device)
    return model(inputs).mean()


def fixed_model_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    inputs = inputs.to(device)
    return model(inputs).mean()


def broken_data_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    return model(inputs).mean()


def fixed_data_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def broken_labels_not_moved(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch()
    inputs = inputs.to(device)
    outputs = model(inputs)
    return criterion(outputs, targets)


def fixed_labels_not_moved(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch()
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    return criterion(outputs, targets)


def broken_predictions_vs_labels(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    predictions = outputs.argmax(dim=1)
    correct = predictions == targets
    return correct.sum()


def fixed_predictions_vs_labels(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    predictions = outputs.argmax(dim=1)
    targets = targets.to(device)
    correct = predictions == targets
    return correct.sum()


def broken_to_not_reassigned(device):
    model = ANN().to(device)
    inputs, targets = batch()
    inputs.to(device)
    return model(inputs).mean()


def fixed_to_not_reassigned(device):
    model = ANN().to(device)
    inputs, targets = batch()
    inputs = inputs.to(device)
    return model(inputs).mean()


def broken_tensor_in_forward(device):
    class Noisy(ANN):
        def forward(self, x):
            noise = torch.rand(x.shape)
            return super().forward(x + noise)

    model = Noisy().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def fixed_tensor_in_forward(device):
    class Noisy(ANN):
        def forward(self, x):
            noise = torch.rand_like(x)
            return super().forward(x + noise)

    model = Noisy().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def broken_layers_in_list(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 64)
            second = nn.Linear(64, 10)
            self.layers = [first, second]

        def forward(self, x):
            x = x.flatten(1)
            for layer in self.layers:
                x = layer(x).relu()
            return x

    model = Stack().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def fixed_layers_in_list(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 64)
            second = nn.Linear(64, 10)
            self.layers = nn.ModuleList(
                [first, second],
            )

        def forward(self, x):
            x = x.flatten(1)
            for layer in self.layers:
                x = layer(x).relu()
            return x

    model = Stack().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def broken_loss_not_moved(device):
    model = ANN().to(device)
    criterion = ScaledLoss()
    inputs, targets = batch()
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    return criterion(outputs, targets)


def fixed_loss_not_moved(device):
    model = ANN().to(device)
    criterion = ScaledLoss().to(device)
    inputs, targets = batch()
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    return criterion(outputs, targets)


def broken_cuda_hard_coded(device):
    model = ANN().cuda()
    inputs, targets = batch()
    return model(inputs.cuda()).mean()


def fixed_cuda_hard_coded(device):
    found = torch.accelerator
    device = torch.device("cpu")
    if found.is_available():
        device = found.current_accelerator()
    model = ANN().to(device)
    inputs, targets = batch()
    return model(inputs.to(device)).mean()


def broken_numpy_on_device(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    outputs = outputs.detach()
    return outputs.numpy().mean()


def fixed_numpy_on_device(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    outputs = outputs.detach().cpu()
    return outputs.numpy().mean()


def broken_numpy_requires_grad(device):
    model = ANN()
    inputs, targets = batch()
    outputs = model(inputs)
    return outputs.numpy().mean()


def fixed_numpy_requires_grad(device):
    model = ANN()
    inputs, targets = batch()
    outputs = model(inputs).detach()
    return outputs.numpy().mean()
