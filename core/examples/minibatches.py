"""How a function of core.lessons.train.minibatches is called."""

import torch

from core.lessons.train.minibatches import slices


def try_slices() -> None:
    device = torch.device("cuda")
    images, labels = torch.rand(200, 784), torch.randint(0, 10, (200,))
    for inputs, targets in slices(images, labels, batch_size=64):
        inputs = inputs.to(device)
        print(len(inputs))
