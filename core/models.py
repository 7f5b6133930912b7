"""The models: two for images, (N, 1, 28, 28) to logits (N, 10), and one for numbers.

Images may be uint8 pixels, which the model scales on its own device. Compared
with floats, only a quarter of the bytes has to be moved.
"""

import torch
from torch import Tensor, nn

from core.config import RunConfig

# The pixels of Fashion-MNIST's training images, of 0 to 255
PIXEL_MEAN, PIXEL_DEVIATION = 73, 90


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

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            block(1, 16, pool=True),  # 28×28 to 14×14
            block(16, 32, pool=True),  # to 7×7
            block(32, 64, pool=True),  # to 3×3
            block(64, 96, pool=False),
            nn.Flatten(),
            nn.Dropout(dropout),
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


class Tuned(nn.Module):
    """A model's layers with some changes around them.

    The names in the state_dict stay those of the model.
    """

    def __init__(
        self, model: nn.Module, use_half: bool, mirror: bool, standardize: bool
    ) -> None:
        super().__init__()
        self.layers = model.get_submodule("layers")
        self.use_half, self.mirror = use_half, mirror
        self.standardize = standardize

    def forward(self, images: Tensor) -> Tensor:
        pixels = as_floats(images)
        if self.standardize:
            pixels = (pixels * 255 - PIXEL_MEAN) / PIXEL_DEVIATION
        logits = self.logits(pixels)
        if self.mirror and not self.training:
            # Half the sum: the sum itself would be too sure of each class.
            logits = (logits + self.logits(pixels.flip(-1))) / 2
        return logits

    def logits(self, pixels: Tensor) -> Tensor:
        if not (self.use_half and has_bfloat16(pixels.device)):
            return self.layers(pixels)
        with torch.autocast(pixels.device.type, torch.bfloat16):
            return self.layers(pixels).float()


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device itself computes in bfloat16; emulating it is slow."""
    if device.type in ("cuda", "xpu"):
        return torch.get_device_module(device).is_bf16_supported(False)
    features = getattr(torch.cpu, "get_capabilities", dict[str, bool])()
    x86, arm = ("avx512_bf16", "amx_bf16"), ("bf16",)
    return device.type == "cpu" and any(map(features.get, x86 + arm))


def whitening(images: Tensor) -> Tensor:
    """Filters (16, 1, 3, 3): the axes of 3×3 patches, and their negatives."""
    patches = nn.functional.unfold(images, 3).transpose(1, 2).reshape(-1, 9)
    patches -= patches.mean(dim=0)
    variances, axes = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (axes / (variances + 5e-4).sqrt()).T[1:].view(8, 1, 3, 3)
    return torch.cat([filters, -filters]) / 10


MODELS: dict[str, type[nn.Module]] = {
    "ann": ANN,
    "cnn": CNN,
    "simple": SimpleRegressionNet,
}


def build(name: str) -> nn.Module:
    """A new model on the CPU, with weights drawn from torch's global seed."""
    return MODELS[name]()


def of_run(config: RunConfig, images: Tensor | None = None) -> nn.Module:
    """A new model for a run, on the CPU, with weights drawn from torch's global seed.

    With the training images, uint8 (N, 1, 28, 28), the CNN's first filters whiten them
    if `config` says so; without them, the weights are only good for being replaced.
    """
    is_cnn = config.model == "cnn"
    model = CNN(config.dropout) if is_cnn else build(config.model)
    if config.normalize and is_cnn and images is not None:
        first = next(model.parameters())
        first.data.copy_(whitening(as_floats(images[:5000])))
    standardize = config.normalize and not is_cnn
    if config.half or standardize or config.mirror:
        return Tuned(model, config.half, config.mirror, standardize)
    return model


def count_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
