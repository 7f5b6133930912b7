"""Compare the average of several ranks' gradients with the gradients of a whole batch.

Both are equal except for the last digits, since floats are added in another order.
"""

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from core import models
from core.data import datasets
from core.lessons.scale import ranks
from core.lessons.scale.data_parallel import SEED, fingerprint
from core.lessons.scale.scale_result import Gradients, Share
from core.measure.environment import now
from core.watch import UNWATCHED, Watch


def average(model: nn.Module) -> None:
    """Average the gradients of all ranks, as DistributedDataParallel does."""
    for parameter in model.parameters():
        assert parameter.grad is not None  # the backward pass is done
        dist.all_reduce(parameter.grad)  # now every rank has the sum
        parameter.grad /= dist.get_world_size()


def compute(model: nn.Module, images: Tensor, labels: Tensor) -> None:
    """Compute the gradients of the mean loss; leave them in the parameters' `grad`.

    Dropout is off, since it would differ between the models that are compared.
    """
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.eval()
    nn.CrossEntropyLoss()(model(images), labels).backward()


def share(task: str, model_name: str, images: int) -> Share:
    """Compare a rank's gradients, the ranks' average, and a whole batch's."""
    rank, count = dist.get_rank(), dist.get_world_size()
    device = ranks.device()
    batch = datasets.load(task).train.first(images * count)
    whole = batch.images.to(device), batch.labels.to(device)
    mine = slice(images * rank, images * (rank + 1))

    def fresh() -> nn.Module:
        torch.manual_seed(SEED)
        return models.build(model_name).to(device)

    by_hand, at_once = fresh(), fresh()
    compute(by_hand, whole[0][mine], whole[1][mine])
    own = last_bias(by_hand)
    average(by_hand)
    compute(at_once, *whole)
    by_ddp = DistributedDataParallel(fresh())
    compute(by_ddp, whole[0][mine], whole[1][mine])

    averaged, alone, ddp = map(gradients, (by_hand, at_once, by_ddp))
    return Share(
        own,
        last_bias(by_hand),
        last_bias(at_once),
        greatest=alone.abs().max().item(),
        difference=(averaged - alone).abs().max().item(),
        by_ddp=(averaged - ddp).abs().max().item(),
        all=fingerprint([averaged]),
    )


def gradients(model: nn.Module) -> Tensor:
    """All gradients of the model as one vector (parameters,)."""
    grads = (parameter.grad for parameter in model.parameters())
    return torch.cat([grad.flatten() for grad in grads if grad is not None])


def last_bias(model: nn.Module) -> tuple[float, ...]:
    """Gradients of the last layer's bias, one for each class."""
    *_, bias = model.parameters()
    assert bias.grad is not None
    return tuple(bias.grad.tolist())


def measure(
    count: int, task: str, model_name: str, images: int, watch: Watch = UNWATCHED
) -> Gradients:
    """Compare the gradients of `count` ranks, each of which has `images` images."""
    address, backend = "core.lessons.scale.gradients:share", ranks.backend_for(count)
    arguments = (task, model_name, images)
    shares = ranks.run(address, count, *arguments, backend=backend, watch=watch)
    classes = datasets.load(task).classes
    return Gradients(classes, shares, images, *ranks.means(backend), now())
