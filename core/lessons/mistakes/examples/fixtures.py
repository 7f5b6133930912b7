"""What the mistakes' functions share: images, models, files, a loss, and a queue."""

import io
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache

import torch
from torch import distributed, multiprocessing, nn
from torch.utils.data import DataLoader

from core import devices
from core.data import curve, sprites
from core.loops import train_epoch
from core.models import ANN, as_floats
from core.state_dict import pack

TRAIN, TEST, RAGGED_TEST = 2_000, 1_000, 1_001  # numbers of images
STEPS = 126  # two epochs of TRAIN images, with batches of 32
shares: list[torch.Tensor] = []  # each batch's accuracy, from the latest call of `hits`
readings: list[float] = []  # MB of the device's memory at each call of `memory`


@cache
def images(count, seed=0):
    """Sprites (count, 1, 28, 28) from 0 to 1, and labels (count,), both on the CPU."""
    inputs, targets = sprites.draw(count, seed)
    return as_floats(inputs), targets


def batch(count=64, first_label=0):
    """A batch like a DataLoader's: `count` images and labels, on the CPU."""
    inputs, targets = images(count)
    return inputs, targets + first_label


def new_model(device):
    """A new ANN, always with the same first weights, and its optimizer."""
    torch.manual_seed(0)
    model = ANN().to(device)
    return model, torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)


def steps(device):
    """The batches of two epochs, with 32 images per batch, on the device."""
    return 2 * batches_of(32, images(TRAIN), device)


def batches_of(size, images, device):
    """A list of batches of images with their labels, moved to the device."""
    inputs, targets = images
    pairs = zip(inputs.split(size), targets.split(size), strict=True)
    return [(inputs.to(device), targets.to(device)) for inputs, targets in pairs]


def trained_ann(device):
    """The ANN, trained on the batches of `steps`."""
    model, optimizer = new_model(device)
    list(train_epoch(model, steps(device), nn.CrossEntropyLoss(), optimizer, device))
    return model


def trained_with_norm(device):
    """A trained model with batch norm and dropout, still in training mode."""
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
    batches = 3 * batches_of(32, images(TRAIN), device)
    list(train_epoch(model, batches, nn.CrossEntropyLoss(), optimizer, device))
    return model


@torch.inference_mode()
def hits(model, batches):
    """For each batch, which predictions are right: bools (N,)."""
    correct = [model(x).argmax(dim=1) == targets for x, targets in batches]
    shares[:] = [right.float().mean() for right in correct]
    return correct


def accuracy(model, device):
    """The accuracy on test images that the model was not trained on."""
    (right,) = hits(model.eval(), batches_of(TEST, images(TEST, seed=1), device))
    return right.sum().item() / TEST


def groups(device):
    """Batches of 50 test images, sorted by class.

    A dataset with one folder per class is read in this order.
    """
    inputs, targets = images(TEST, seed=1)
    order = targets.argsort()
    return batches_of(50, (inputs[order], targets[order]), device)


def ragged(device):
    """1,001 test images in batches of 500: the last batch is one image."""
    return batches_of(500, images(RAGGED_TEST, seed=1), device)


def updated_by(optimizer):
    """The number of weights that the optimizer updates."""
    groups = optimizer.param_groups
    return sum(weights.numel() for group in groups for weights in group["params"])


def memory(device, kind="allocated"):
    """MB that tensors use on the device, or that torch has "reserved" for them."""
    backend = torch.get_device_module(device)
    # MPS has another name for memory_allocated. A CPU has no such function: int() is 0.
    on_mps = getattr(backend, "current_allocated_memory", int)
    readings.append(getattr(backend, f"memory_{kind}", on_mps)() / 1e6)
    return readings[-1]


def empty_cache(device):
    """Call the device's empty_cache, such as torch.cuda.empty_cache."""
    if device.type != "cpu":
        torch.get_device_module(device).empty_cache()


def points(device):
    """500 noisy points of core.data.curve, as tensors x (500, 1) and y (500, 1)."""
    return torch.tensor(curve.draw(500, seed=0), device=device).split(1, dim=1)


def train(batches, device):
    """Train on these batches in this order; return the last loss."""
    model, optimizer = new_model(device)
    *_, loss = train_epoch(model, batches, nn.CrossEntropyLoss(), optimizer, device)
    return loss.item()


def adam_state():
    """The state_dict of an Adam optimizer after one step, as in a checkpoint."""
    model = ANN()
    optimizer = torch.optim.Adam(model.parameters())
    model(batch()[0]).mean().backward()
    optimizer.step()
    return optimizer.state_dict()


def workers(start, data, collate, count=1):
    """A loader whose workers are started by "fork" or "spawn"."""
    how = {"multiprocessing_context": start, "collate_fn": collate}
    return DataLoader(data, batch_size=16, num_workers=count, **how)


def limit_shared_memory(size):
    """Limit a batch in shared memory to `size` bytes, as a container may do."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def on_two_ranks(train):
    """Run train(0) here and train(1) in another process; return train(0)."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    with tempfile.NamedTemporaryFile() as meeting:
        place = f"file://{meeting.name}"
        seconds = timedelta(seconds=2)  # torch waits 10 or 30 minutes by default

        def join(rank):
            how = {"timeout": seconds, "rank": rank, "world_size": 2}
            distributed.init_process_group("gloo", place, **how)
            value = train(rank)
            time.sleep(60 * rank)  # rank 1 stays alive until its process is killed
            return value

        fork = multiprocessing.get_context("fork")
        fork.Process(target=join, args=(1,), daemon=True).start()
        return join(0)


def saved(content):
    """The content as an open file that torch.save has written."""
    return io.BytesIO(pack(content))


def saved_on_cuda(model):
    """The file that torch.save would write if the model were on a GPU.

    The file says "cuda:0" about each storage, wherever that storage really is.
    """
    torch.serialization.register_package(
        0, lambda storage: "cuda:0", lambda storage, tag: None
    )
    return saved(model.state_dict())


class ScaledLoss(nn.CrossEntropyLoss):
    """Cross entropy, after a learned factor has scaled each class's logits."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))

    def forward(self, outputs, targets):
        return super().forward(outputs * self.scale, targets)


class DeviceQueue:
    """Work for a device: `put_work` doesn't wait for its end; `synchronize` does.

    A CPU has no queue, so a thread does the work in place of a device.
    """

    def __init__(self, device):
        self.device = device
        self.thread = ThreadPoolExecutor(1) if device.type == "cpu" else None
        side, self.products = (400, 40) if device.type == "cpu" else (4096, 20)
        self.matrix = torch.rand(side, side, device=device)
        self.put_work()  # the first call includes the setup
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
