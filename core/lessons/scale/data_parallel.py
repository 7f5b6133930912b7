"""Data parallelism: each rank trains a copy of one model on its share of every batch.

The loop is that of the lesson Train. In a terminal, start a rank for each GPU, or as
many CPU processes as you like:

    torchrun --nproc-per-node 2 -m core.lessons.scale.data_parallel
"""

import hashlib
import os
import signal
import time
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler, TensorDataset

from core import loops, models
from core.data import datasets, feeds
from core.lessons.scale import ranks
from core.lessons.scale.scale_result import SIZES, ParallelRun, RankEnd, RankLoss
from core.measure.environment import now
from core.training import REPORT_SECONDS
from core.watch import UNWATCHED, Watch

LEARNING_RATE = 0.001
SEED = 0


class ShareOrder(feeds.EpochOrder):
    """The order in which one rank's sampler draws its images."""

    def __init__(self, sampler: DistributedSampler) -> None:
        super().__init__(len(sampler), seed=None, augment=False)
        self.sampler = sampler

    def draw(self) -> tuple[Tensor, None]:
        """Indices of images, int64 (size,), and None, since no image is flipped."""
        return torch.tensor(list(self.sampler)), None


def train(
    task: str,
    model_name: str,
    batch_size: int,
    epochs: int,
    dies: tuple[int, int] | None = None,
    watch: Watch = UNWATCHED,
) -> RankEnd:
    """Run on each rank: train on its share of each batch.

    `batch_size` counts the images of all ranks together. `dies` is a rank, and
    the step after which this rank kills itself.
    """
    rank, count = dist.get_rank(), dist.get_world_size()
    device, data = ranks.device(), datasets.load(task)
    torch.manual_seed(SEED)
    model = models.build(model_name).to(device)
    # DDP begins by giving all ranks the weights of rank 0.
    model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    dataset = TensorDataset(data.train.images, data.train.labels)
    sampler: DistributedSampler = DistributedSampler(dataset, count, rank)
    # Like a DataLoader(dataset, batch_size // count, sampler=sampler):
    share = ShareOrder(sampler)
    feed = feeds.TensorBatches(data.train, batch_size // count, share)
    criterion, meter = nn.CrossEntropyLoss(), Meter(rank, watch)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)  # otherwise, every epoch has the same order
        # DDP's backward pass averages the gradients over all ranks.
        losses = loops.train_epoch(model, feed, criterion, optimizer, device)
        for loss in losses:
            meter.add(loss)
            if (rank, meter.step) == dies:
                die()
    return meter.end(model, len(sampler) * epochs, data.test, device)


def die() -> None:
    """End this process at once, as the system does when memory runs out."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


class Meter:
    """Reports the mean loss of a rank a few times a second."""

    def __init__(self, rank: int, watch: Watch) -> None:
        self.rank, self.step = rank, 0
        self._watch = watch
        self._reported: list[RankLoss] = []
        self._losses: list[Tensor] = []  # losses since the last report
        self._began, self._due = time.perf_counter(), 0.0

    def add(self, loss: Tensor) -> None:
        self.step += 1
        self._losses.append(loss)
        if time.perf_counter() > self._due:
            mean = torch.stack(self._losses).mean().item()
            self._reported.append(RankLoss(self.rank, self.step, mean))
            self._watch.report(self._reported[-1])
            self._losses, self._due = [], time.perf_counter() + REPORT_SECONDS

    def end(
        self,
        model: DistributedDataParallel,
        images: int,
        test: datasets.Split,
        device: torch.device,
    ) -> RankEnd:
        """This rank's result after `images` training images. Only rank 0 tests."""
        seconds, correct = time.perf_counter() - self._began, None
        if self.rank == 0:
            feed = feeds.in_order(test, device)
            outputs, labels = loops.predict(model.module, feed, device)
            correct = loops.score(outputs, labels, nn.CrossEntropyLoss()).correct
        weights = fingerprint(model.parameters())
        return RankEnd(
            self.rank, tuple(self._reported), images, weights, seconds, correct
        )


def fingerprint(tensors: Iterable[Tensor]) -> str:
    """A hash of all values of the tensors, bit for bit."""
    hash = hashlib.sha256()
    for tensor in tensors:
        hash.update(tensor.detach().cpu().numpy().tobytes())
    return hash.hexdigest()[:12]


def run(
    count: int,
    task: str,
    model_name: str,
    batch_size: int,
    epochs: int,
    dies: tuple[int, int] | None = None,
    watch: Watch = UNWATCHED,
) -> ParallelRun:
    """Train on `count` ranks of this machine; each rank reports its losses.

    All counts in SIZES use the same backend, so that their runs can be compared. Raises
    ExplainedError if a rank dies.
    """
    backend = ranks.backend_for(max(count, *SIZES))
    address = "core.lessons.scale.data_parallel:train"
    arguments = (task, model_name, batch_size, epochs, dies)
    ends = ranks.run(
        address,
        count,
        *arguments,
        backend=backend,
        watch=watch,
        reports=RankLoss,
    )
    data, means = datasets.load(task), ranks.means(backend)
    return ParallelRun(ends, len(data.train), len(data.test), *means, now())


def main() -> None:
    """Train as one of the ranks that torchrun has started."""
    ranks.meet()
    task = "fashion-mnist" if datasets.status().usable else "sprites"
    end = train(task, "ann", 64, epochs=1)
    print(f"rank {end.rank}: {end.images:,} images, parameters {end.weights}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
