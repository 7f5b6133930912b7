"""The classic mistakes: each a few lines that really fail, with the fix beside it.

`broken_<slug>(device)` raises, or returns a figure that misleads;
`fixed_<slug>(device)` does not. What each is called and why it is one stands in
core.mistakes.catalogue, what runs them in core.mistakes.runner. The two halves are read
side by side, each on half a screen: hence lines of at most 42 characters, and no
annotations.
"""

import io
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache

import torch
from torch import nn

from core import devices
from core.config import RunConfig
from core.data import sprites
from core.models import ANN, as_floats

TRAIN, TEST, RAGGED_TEST = 2_000, 1_000, 1_001  # images
STEPS = 126  # two epochs of TRAIN in batches of 32


# Loud: an exception


def broken_data_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs)
    return outputs.mean()


def fixed_data_not_moved(device):
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    return outputs.mean()


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
    outputs = model(inputs)
    return outputs.mean()


def fixed_to_not_reassigned(device):
    model = ANN().to(device)
    inputs, targets = batch()
    inputs = inputs.to(device)
    outputs = model(inputs)
    return outputs.mean()


def broken_tensor_in_forward(device):
    class Noisy(ANN):
        def forward(self, x):
            noise = torch.rand(x.shape)
            return super().forward(x + noise)

    model = Noisy().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    return outputs.mean()


def fixed_tensor_in_forward(device):
    class Noisy(ANN):
        def forward(self, x):
            noise = torch.rand_like(x)
            return super().forward(x + noise)

    model = Noisy().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    return outputs.mean()


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
    outputs = model(inputs.to(device))
    return outputs.mean()


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
    outputs = model(inputs.to(device))
    return outputs.mean()


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
    outputs = model(inputs.cuda())
    return outputs.mean()


def fixed_cuda_hard_coded(device):
    found = torch.accelerator
    device = torch.device("cpu")
    if found.is_available():
        device = found.current_accelerator()
    model = ANN().to(device)
    inputs, targets = batch()
    outputs = model(inputs.to(device))
    return outputs.mean()


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


def broken_cuda_checkpoint(device):
    checkpoint = saved_on_cuda(ANN())
    model = ANN()
    state = torch.load(checkpoint)
    return model.load_state_dict(state)


def fixed_cuda_checkpoint(device):
    checkpoint = saved_on_cuda(ANN())
    model = ANN()
    state = torch.load(
        checkpoint,
        map_location="cpu",
    )
    return model.load_state_dict(state)


def broken_pickle_refused(device):
    file = io.BytesIO()
    config = RunConfig(epochs=5)
    torch.save({"config": config}, file)
    file.seek(0)
    loaded = torch.load(
        file,
        weights_only=True,
    )
    return loaded["config"]


def fixed_pickle_refused(device):
    file = io.BytesIO()
    config = asdict(RunConfig(epochs=5))
    torch.save({"config": config}, file)
    file.seek(0)
    loaded = torch.load(
        file,
        weights_only=True,
    )
    return RunConfig(**loaded["config"])


def broken_out_of_memory(device):
    model = wide_model().to(device)
    criterion = nn.CrossEntropyLoss(
        reduction="sum",
    )
    inputs, targets = batch(4_000)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    loss.backward()
    return model[0].weight.grad.norm()


def fixed_out_of_memory(device):
    model = wide_model().to(device)
    criterion = nn.CrossEntropyLoss(
        reduction="sum",
    )
    inputs, targets = batch(4_000)
    pieces = zip(
        inputs.split(100),
        targets.split(100),
    )
    for inputs, targets in pieces:
        inputs = inputs.to(device)
        targets = targets.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()  # adds up
    return model[0].weight.grad.norm()


def broken_label_outside_classes(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch(first_label=1)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets)
    return loss.item()


def fixed_label_outside_classes(device):
    model = ANN().to(device)
    criterion = nn.CrossEntropyLoss()
    inputs, targets = batch(first_label=1)
    inputs = inputs.to(device)
    targets = targets.to(device)
    outputs = model(inputs)
    loss = criterion(outputs, targets - 1)
    return loss.item()


# Silent: a figure that misleads


def broken_softmax_before_loss(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        outputs = outputs.softmax(dim=1)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def fixed_softmax_before_loss(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def broken_no_zero_grad(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def fixed_no_zero_grad(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, device)


def broken_no_eval_mode(device):
    model = trained_with_norm(device)
    correct = 0
    with torch.inference_mode():
        for inputs, targets in groups(device):
            outputs = model(inputs)
            said = outputs.argmax(dim=1)
            right = said == targets
            correct += right.sum()
    return int(correct) / TEST


def fixed_no_eval_mode(device):
    model = trained_with_norm(device)
    model.eval()
    correct = 0
    with torch.inference_mode():
        for inputs, targets in groups(device):
            outputs = model(inputs)
            said = outputs.argmax(dim=1)
            right = said == targets
            correct += right.sum()
    return int(correct) / TEST


def broken_timing_unsynchronized(device):
    queue = DeviceQueue(device)
    start = time.perf_counter()
    queue.put_work()
    return time.perf_counter() - start


def fixed_timing_unsynchronized(device):
    queue = DeviceQueue(device)
    queue.synchronize()
    start = time.perf_counter()
    queue.put_work()
    queue.synchronize()
    return time.perf_counter() - start


def broken_item_every_step(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    total = 0.0
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / STEPS


def fixed_item_every_step(device):
    model, optimizer = new_model(device)
    criterion = nn.CrossEntropyLoss()
    total = torch.zeros((), device=device)
    for inputs, targets in steps(device):
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    return total.item() / STEPS


def broken_mean_of_batch_means(device):
    model = trained_ann(device)
    means = []
    with torch.inference_mode():
        for inputs, targets in ragged(device):
            outputs = model(inputs)
            said = outputs.argmax(dim=1)
            right = said == targets
            mean = right.float().mean()
            means.append(mean.item())
    return sum(means) / len(means)


def fixed_mean_of_batch_means(device):
    model = trained_ann(device)
    correct = total = 0
    with torch.inference_mode():
        for inputs, targets in ragged(device):
            outputs = model(inputs)
            said = outputs.argmax(dim=1)
            right = said == targets
            correct += right.sum()
            total += len(right)
    return int(correct) / total


def broken_list_never_trained(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 128)
            second = nn.Linear(128, 64)
            self.hidden = [first, second]
            self.head = nn.Linear(64, 10)

    weights = Stack().parameters()
    optimizer = torch.optim.AdamW(weights)
    return updated_by(optimizer)


def fixed_list_never_trained(device):
    class Stack(nn.Module):
        def __init__(self):
            super().__init__()
            first = nn.Linear(784, 128)
            second = nn.Linear(128, 64)
            self.hidden = nn.ModuleList(
                [first, second],
            )
            self.head = nn.Linear(64, 10)

    weights = Stack().parameters()
    optimizer = torch.optim.AdamW(weights)
    return updated_by(optimizer)


# What they begin with


@cache
def images(count, seed=0):
    """Sprites as floats 0..1 (count, 1, 28, 28), labels (count,), on the CPU."""
    inputs, targets = sprites.draw(count, seed)
    return as_floats(inputs), targets


def batch(count=64, first_label=0):
    """What a DataLoader hands out: `count` images and labels, on the CPU."""
    inputs, targets = images(count)
    return inputs, targets + first_label


def wide_model():
    """A convolution whose outputs take 100 kB for each image, and a linear layer."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 28 * 28, 10),
    )


def saved_on_cuda(model):
    """A file as torch.save writes it for a model on a GPU, made without one.

    All that differs is the tag on each storage that says where it was.
    """
    torch.serialization.register_package(
        0, lambda storage: "cuda:0", lambda storage, tag: None
    )
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    return file


def new_model(device):
    """The ANN, and its optimizer, always from the same seed."""
    torch.manual_seed(0)
    model = ANN().to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def steps(device):
    """Two epochs of batches of 32, on the device."""
    return 2 * batches_of(32, images(TRAIN), device)


def batches_of(size, images, device):
    """A list of batches of images with their labels, moved to the device."""
    inputs, targets = images
    pairs = zip(inputs.split(size), targets.split(size), strict=True)
    return [(inputs.to(device), targets.to(device)) for inputs, targets in pairs]


def trained_ann(device):
    """The ANN after those two epochs."""
    model, optimizer = new_model(device)
    fit(model, optimizer, steps(device))
    return model


def trained_with_norm(device):
    """784-128-10 with batch norm and dropout, trained and still in training mode."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(28 * 28, 128),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Linear(128, 10),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    fit(model, optimizer, 3 * batches_of(32, images(TRAIN), device))
    return model


def fit(model, optimizer, batches):
    """One step for each batch."""
    criterion = nn.CrossEntropyLoss()
    for inputs, targets in batches:
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accuracy(model, device):
    """Correct over total on test images that training has not seen."""
    inputs, targets = images(TEST, seed=1)
    model.eval()
    with torch.inference_mode():
        said = model(inputs.to(device)).argmax(dim=1).cpu()
    return (said == targets).sum().item() / len(targets)


def groups(device):
    """Test images in batches of 50, one class after the other, as folders list them."""
    inputs, targets = images(TEST, seed=1)
    order = targets.argsort()
    return batches_of(50, (inputs[order], targets[order]), device)


def ragged(device):
    """1,001 test images in batches of 500: the last batch is one image."""
    return batches_of(500, images(RAGGED_TEST, seed=1), device)


def updated_by(optimizer):
    """How many numbers the optimizer may change."""
    groups = optimizer.param_groups
    return sum(weights.numel() for group in groups for weights in group["params"])


class ScaledLoss(nn.CrossEntropyLoss):
    """Cross entropy of logits, scaled by a learned factor for each class."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))

    def forward(self, outputs, targets):
        return super().forward(outputs * self.scale, targets)


class DeviceQueue:
    """Work for the device: `put_work` returns at once, `synchronize` waits for it.

    A CPU has no queue: there, a thread takes its place.
    """

    def __init__(self, device):
        self.device = device
        self.thread = ThreadPoolExecutor(1) if device.type == "cpu" else None
        side, self.products = (400, 40) if device.type == "cpu" else (4096, 20)
        self.matrix = torch.rand(side, side, device=device)
        self.put_work()  # the first time pays for setting up
        self.synchronize()

    def put_work(self):
        if self.thread is not None:
            self.done = self.thread.submit(self.work)
        else:
            self.work()

    def work(self):
        for _ in range(self.products):
            torch.mm(self.matrix, self.matrix)

    def synchronize(self):
        if self.thread is not None:
            self.done.result()
        else:
            devices.synchronize(self.device)
