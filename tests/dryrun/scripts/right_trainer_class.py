import argparse
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 2
    lr: float = 1e-3
    device: str = field(default_factory=lambda: "cuda" if torch.cuda.is_available() else "cpu")


class Sines(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        t = torch.linspace(0, 6.28, 24)
        return {"signal": torch.sin(t * (1 + i % 2)), "target": i % 2, "name": f"sine-{i}"}


def to_device(batch, device):
    """Moves tensors in dicts, lists and tuples; leaves the rest as it is."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(to_device(value, device) for value in batch)
    return batch


class Trainer:
    def __init__(self, model, config):
        self.config = config
        self.model = model.to(config.device)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)

    def run(self, loader):
        for epoch in range(self.config.epochs):
            for batch in loader:
                batch = to_device(batch, self.config.device)
                loss = nn.functional.cross_entropy(self.model(batch["signal"]), batch["target"])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    Trainer(nn.Sequential(nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 2)), Config(args.epochs)).run(DataLoader(Sines(), batch_size=16))
