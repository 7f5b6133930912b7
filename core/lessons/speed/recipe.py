"""Train a CNN to 93% on Fashion-MNIST in less than a minute on two CPU cores.

On a GPU, --device cuda is faster. With --epochs 4, the CNN reaches 92.5%. With --model
ann, an ANN reaches 88%. This file needs no other file of the project.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

Data = tuple[Tensor, Tensor]  # images uint8 (N, 1, 28, 28), and labels (N,)


@dataclass(frozen=True)
class Recipe:
    """The settings of a training run; the defaults are the CNN's."""

    model: str = "cnn"
    epochs: int = 6
    batch_size: int = 128
    learning_rate: float = 1e-2  # at its peak, after a quarter of the steps
    half: bool = True  # compute in bfloat16 if the device supports it
    label_smoothing: float = 0.1
    whiten: bool = True  # start with filters computed from the images
    center: float = 0.0  # the pixel value (of 0 to 255) that becomes 0
    spread: float = 255.0  # center + spread is the pixel value that becomes 1
    flips: bool = True  # mirror half of the training images
    mirror: bool = True  # in the test, add the outputs for the mirror image


CNN = Recipe()
ANN = Recipe("ann", 3, 128, 6e-3, center=73, spread=90, flips=False, mirror=False)


def build(recipe: Recipe, images: Tensor) -> nn.Module:
    """The ANN (109,386 weights) or the CNN (87,546), from pixels to logits (N, 10)."""
    layers: list[nn.Module] = []
    if recipe.model == "ann":
        for before, after in [(784, 128), (128, 64)]:
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(nn.Flatten(), *layers, nn.Linear(64, 10))
    for before, after in [(1, 16), (16, 32), (32, 64), (64, 96)]:
        layers.append(nn.Conv2d(before, after, 3, padding=1, bias=False))
        if after < 96:  # pool first: the batch norm then has a quarter of the work
            layers.append(nn.MaxPool2d(2))
        layers += [nn.BatchNorm2d(after), nn.ReLU()]
    layers += [nn.Flatten(), nn.Linear(96 * 3 * 3, 10)]
    if recipe.whiten:
        layers[0].weight.data = whitening(images[:5000].float() / 255)
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def whitening(images: Tensor) -> Tensor:
    """Filters (16, 1, 3, 3): the axes of 3×3 patches, and their negatives."""
    patches = nn.functional.unfold(images, 3).transpose(1, 2).reshape(-1, 9)
    patches -= patches.mean(dim=0)
    variances, axes = torch.linalg.eigh(patches.T @ patches / len(patches))
    filters = (axes / (variances + 5e-4).sqrt()).T[1:].view(8, 1, 3, 3)
    return torch.cat([filters, -filters]) / 10


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device itself computes in bfloat16; emulating it is slow."""
    if device.type in ("cuda", "xpu"):
        return torch.get_device_module(device).is_bf16_supported(False)
    features = getattr(torch.cpu, "get_capabilities", dict[str, bool])()
    x86, arm = ("avx512_bf16", "amx_bf16"), ("bf16",)
    return device.type == "cpu" and any(map(features.get, x86 + arm))


def outputs(recipe: Recipe, model: nn.Module, pixels: Tensor) -> Tensor:
    """The model's logits, float (N, 10), for pixels (N, 1, 28, 28)."""
    half = recipe.half and has_bfloat16(pixels.device)
    with torch.autocast(pixels.device.type, torch.bfloat16, enabled=half):
        return model((pixels - recipe.center) / recipe.spread).float()


def train(recipe: Recipe, model: nn.Module, data: Data) -> Iterator[Tensor]:
    """Train for recipe.epochs epochs; yields the loss of each step."""
    device, size = next(model.parameters()).device, recipe.batch_size
    images, labels = (part.to(device) for part in data)
    criterion = nn.CrossEntropyLoss(label_smoothing=recipe.label_smoothing)
    optimizer = AdamW(model.parameters(), weight_decay=0.05, fused=True)
    steps = max(recipe.epochs * -(-len(labels) // size), 5)
    rate = recipe.learning_rate
    schedule = OneCycleLR(optimizer, rate, steps, pct_start=0.25)
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(labels)).to(device).split(size):
            pixels = images[batch].float()
            if recipe.flips:
                mirrored = torch.rand(len(batch), 1, 1, 1, device=device) < 0.5
                pixels = torch.where(mirrored, pixels.flip(-1), pixels)
            optimizer.zero_grad()
            loss = criterion(outputs(recipe, model, pixels), labels[batch])
            loss.backward()
            optimizer.step()
            schedule.step()
            yield loss.detach()


@torch.inference_mode()
def accuracy(recipe: Recipe, model: nn.Module, data: Data) -> float:
    """The share of the images that the model classifies correctly."""
    model.eval()
    device, correct = next(model.parameters()).device, 0
    for images, labels in zip(*(t.split(1000) for t in data), strict=True):
        pixels = images.to(device).float()
        logits = outputs(recipe, model, pixels)
        if recipe.mirror:
            logits += outputs(recipe, model, pixels.flip(-1))
        correct += int((logits.argmax(dim=1).cpu() == labels).sum())
    model.train()
    return correct / len(data[1])


def main() -> None:
    from torchvision.datasets import FashionMNIST

    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=["ann", "cnn"], default="cnn")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", default="data", help="folder of the dataset")
    args = parser.parse_args()
    recipe = {"ann": ANN, "cnn": CNN}[args.model]
    recipe = replace(recipe, epochs=args.epochs or recipe.epochs)
    began = time.perf_counter()
    sets = [FashionMNIST(args.data, train, download=True) for train in (True, False)]
    training, test = [(s.data.unsqueeze(1), s.targets) for s in sets]
    torch.manual_seed(args.seed)
    model = build(recipe, training[0]).to(args.device)
    for _ in train(recipe, model, training):
        pass
    share, seconds = accuracy(recipe, model, test), time.perf_counter() - began
    print(f"Test accuracy after {seconds:.1f} seconds: {share:.2%}")


if __name__ == "__main__":
    main()
