"""The ladder: training loops from the textbook's to the fastest, each called a rung.

Each function is a rung: a complete loop, to be read and copied, that makes one small
change to an earlier rung. It sets up training and returns a function that runs an epoch
and yields the loss of each step. `kept` holds the changes that helped on this machine.

The docstrings say how many times as fast an epoch is as with the last rung that was
kept. `climb` timed pairs of epochs, one with each of the two rungs. The ANN's figure is
the median of n = 3 pairs, with the range in parentheses, on all of Fashion-MNIST. The
CNN's is from one pair, on 15,000 images. The machine was an AMD EPYC with AVX512-BF16
(2 cores, one CPU thread, torch 2.15.0). The figures of an NVIDIA H100 (torch 2.11.0,
the ANN, n = 3, 20,000 images) are from the record in core/reference.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.func import functional_call, grad_and_value
from torch.optim.adam import Adam, adam
from torch.utils.data import DataLoader

from core.data.datasets import Split
from core.data.feeds import textbook_dataset
from core.devices import half_dtype
from core.lessons.speed.climb_result import Kept

Losses = Iterator[float | Tensor]  # a loss for each step
Epoch = Callable[[], Losses]
Weights = dict[str, Tensor]
Device = torch.device


def textbook(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """The loop of every tutorial. The ladder begins with it, at 3.8 s an epoch."""
    loader = DataLoader(
        textbook_dataset(split),
        batch_size=64,
        shuffle=True,
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        for inputs, targets in loader:
            inputs = inputs.to(device)
            targets = targets.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def two_workers(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Load batches in two processes.

    Speedup over the textbook loop: ANN 1.04 (1.03 to 1.08), CNN 1.06.
    """
    loader = DataLoader(
        textbook_dataset(split),
        batch_size=64,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        for inputs, targets in loader:
            inputs = inputs.to(device)
            targets = targets.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def four_workers(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Load batches in four processes.

    Speedup over the textbook loop: ANN 1.09 (1.03 to 1.12).
    """
    loader = DataLoader(
        textbook_dataset(split),
        batch_size=64,
        shuffle=True,
        num_workers=4,
        persistent_workers=True,
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        for inputs, targets in loader:
            inputs = inputs.to(device)
            targets = targets.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def pinned(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Copy from pinned memory.

    On an H100, speedup over two_workers: ANN 0.90 (0.84 to 1.27).
    """
    loader = DataLoader(
        textbook_dataset(split),
        batch_size=64,
        shuffle=True,
        num_workers=kept.num_workers,
        persistent_workers=kept.num_workers > 0,
        pin_memory=True,
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        for inputs, targets in loader:
            inputs = inputs.to(device, non_blocking=True)
            targets = targets.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def decoded_once(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Pick each batch from images that are decoded only once.

    Speedup over the last earlier rung whose change was kept:
    ANN 3.99 (3.94 to 4.05), CNN 1.15.
    """
    images, labels = split.images, split.labels
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        order = torch.randperm(len(labels))
        for batch in order.split(64):
            inputs = images.index_select(0, batch).to(device)
            targets = labels.index_select(0, batch).to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def on_the_device(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Keep all images on the device.

    On an H100, speedup over decoded_once: ANN 1.19 (1.19 to 1.25).
    """
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(64):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.item()

    return epoch


def no_waiting(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Don't call .item() in the loop.

    A CPU has no queue, so the ANN's speedup over decoded_once is 1.00 there
    (1.00 to 1.01).
    """
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(64):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.detach()

    return epoch


def fused(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Use fused Adam.

    Speedup over no_waiting: ANN 1.27 (1.26 to 1.28), CNN 1.01.
    """
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3, fused=True)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(64):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.detach()

    return epoch


def larger_batch(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Use larger batches.

    Speedup over fused: ANN 1.69 (1.66 to 1.71), CNN 1.05 (4× the memory).
    """
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=2e-3, fused=True)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(256):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            yield loss.detach()

    return epoch


def half_precision(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Use 16-bit autocast.

    Speedup over the last earlier rung whose change was kept:
    ANN 1.23 (1.22 to 1.24), CNN 1.14.
    """
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=kept.learning_rate, fused=True)
    dtype = half_dtype(device)
    scaler = GradScaler(device.type, enabled=dtype == torch.float16)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(kept.batch_size):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype):
                loss = criterion(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            yield loss.detach()

    return epoch


def channels_last(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Store a pixel's channels together.

    Speedup over the last earlier rung whose change was kept:
    CNN 1.72, in bfloat16.
    """
    model = model.to(memory_format=torch.channels_last)
    images, labels = split.images.to(device), split.labels.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=kept.learning_rate, fused=True)
    dtype = half_dtype(device)
    scaler = GradScaler(device.type, enabled=kept.half and dtype == torch.float16)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order.split(kept.batch_size):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype, enabled=kept.half):
                loss = criterion(model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            yield loss.detach()

    return epoch


def compiled(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Compile the model, which takes 14 s.

    Speedup over the last earlier rung whose change was kept:
    ANN 1.05 (1.03 to 1.06), CNN 0.91.
    """
    if kept.channels_last:
        model = model.to(memory_format=torch.channels_last)
    compiled_model = torch.compile(model)
    images, labels = split.images.to(device), split.labels.to(device)
    whole = len(labels) // kept.batch_size * kept.batch_size
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=kept.learning_rate, fused=True)
    dtype = half_dtype(device)
    scaler = GradScaler(device.type, enabled=kept.half and dtype == torch.float16)

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order[:whole].split(kept.batch_size):
            inputs = images.index_select(0, batch)
            targets = labels.index_select(0, batch)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype, enabled=kept.half):
                loss = criterion(compiled_model(inputs), targets)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            yield loss.detach()

    return epoch


def whole_step(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Compile the whole step, which takes 5 s.

    Speedup over half_precision: ANN 1.35 (1.34 to 1.35).
    """
    images, labels = split.images.to(device), split.labels.to(device)
    whole = len(labels) // kept.batch_size * kept.batch_size
    criterion = nn.CrossEntropyLoss()
    weights = {name: w.detach() for name, w in model.named_parameters()}
    averages = [torch.zeros_like(w) for w in weights.values()]
    squares = [torch.zeros_like(w) for w in weights.values()]
    counts = [torch.zeros((), device=device) for _ in weights]
    half = kept.half and half_dtype(device) == torch.bfloat16

    def loss_of(weights: Weights, inputs: Tensor, targets: Tensor) -> Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            return criterion(functional_call(model, weights, inputs), targets)

    @torch.compile
    def step(batch: Tensor) -> Tensor:
        inputs = images.index_select(0, batch)
        targets = labels.index_select(0, batch)
        gradients, loss = grad_and_value(loss_of)(weights, inputs, targets)
        adam(
            list(weights.values()),
            list(gradients.values()),
            averages,
            squares,
            [],
            counts,
            fused=True,
            lr=kept.learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )
        return loss

    def epoch() -> Losses:
        order = torch.randperm(len(labels), device=device)
        for batch in order[:whole].split(kept.batch_size):
            yield step(batch)

    return epoch


def graphed(split: Split, model: nn.Module, device: Device, kept: Kept) -> Epoch:
    """Replay a step as a CUDA graph.

    On an H100, speedup over whole_step: ANN 3.40 (3.37 to 5.16).
    """
    if kept.channels_last:
        model = model.to(memory_format=torch.channels_last)
    forward = torch.compile(model) if kept.compiled else model
    images, labels = split.images.to(device), split.labels.to(device)
    whole = len(labels) // kept.batch_size * kept.batch_size
    criterion = nn.CrossEntropyLoss()
    # capturable: the optimizer counts its steps on the device, since the CPU
    # takes no part in a replay.
    optimizer = Adam(
        model.parameters(), lr=kept.learning_rate, fused=True, capturable=True
    )
    batch = torch.arange(kept.batch_size, device=device)  # the graph's input
    # No float16, which would need a GradScaler in the graph.
    half = kept.half and half_dtype(device) == torch.bfloat16

    def step() -> Tensor:
        inputs = images.index_select(0, batch)
        targets = labels.index_select(0, batch)
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            loss = criterion(forward(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    # First, run steps on another stream, so that the graph doesn't record setup.
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def epoch() -> Losses:
        # A graph knows only addresses: keep the tensors there alive.
        _ = images, labels, model, optimizer
        order = torch.randperm(len(labels), device=device)
        for indices in order[:whole].split(kept.batch_size):
            batch.copy_(indices)
            graph.replay()
            yield loss  # the same tensor in every step, with a new value

    return epoch
