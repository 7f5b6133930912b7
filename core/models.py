"""The models: two for images, (N, 1, 28, 28) to logits (N, 10), and one for numbers.

Images may be uint8 pixels, which the model scales on its own device. Compared
with floats, only a quarter of the bytes has to be moved.
"""

import torch
from torch import Tensor, nn


def as_floats(images: Tensor) -> Tensor:
    """uint8 pixels 0..255 become float32 0..1; floats pass unchanged."""
    return images.float().div_(255) if images.dtype == torch.uint8 else images


class ANN(nn.Module):
    """784-128-64-10 with ReLU, as in every textbook: 109,386 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(28 * 28, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(as_floats(images))


def block(channels_in: int, channels_out: int, pool: bool) -> nn.Sequential:
    """3×3 convolution, batch norm, ReLU; `pool` halves height and width."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
    ]
    if pool:  # before the batch norm, which then has a quarter of the work
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.BatchNorm2d(channels_out), nn.ReLU())


class CNN(nn.Module):
    """Four convolutions and a linear layer: 87,546 parameters.

    Most parameters are where the images are smallest, because a weight costs
    one multiplication for each pixel that it meets.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            block(1, 16, pool=True),  # 28×28 to 14×14
            block(16, 32, pool=True),  # to 7×7
            block(32, 64, pool=True),  # to 3×3
            block(64, 96, pool=False),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(96 * 3 * 3, 10),
        )
        # In this memory layout, convolutions are usually fastest.
        self.to(memory_format=torch.channels_last)

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(as_floats(images))


class SimpleRegressionNet(nn.Module):
    """1-64-64-1 with tanh, so that its curves are smooth: 4,353 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 1),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layers(inputs)


MODELS: dict[str, type[nn.Module]] = {
    "ann": ANN,
    "cnn": CNN,
    "simple": SimpleRegressionNet,
}


def build(name: str) -> nn.Module:
    """A new model on the CPU, with weights drawn from torch's global seed."""
    return MODELS[name]()


def count_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
