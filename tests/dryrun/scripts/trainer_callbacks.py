import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_fit_start(self, trainer): ...
    def on_batch_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class RunningMean(Callback):
    """Keeps a running mean of the loss without asking the GPU each time."""

    def __init__(self, momentum=0.9):
        self.momentum = momentum
        self.value = torch.zeros(1)

    def on_batch_end(self, trainer, loss):
        self.value.mul_(self.momentum).add_(loss.detach().view(1), alpha=1 - self.momentum)


class Trainer:
    def __init__(self, model, max_epochs, callbacks=(), accelerator="auto"):
        self.device = torch.device("cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu")
        self.model, self.max_epochs, self.callbacks = model.to(self.device), max_epochs, callbacks

    def call(self, hook, *args):
        for callback in self.callbacks:
            getattr(callback, hook)(self, *args)

    def fit(self, loader):
        optimizer = self.model.configure_optimizers()
        self.call("on_fit_start")
        for _ in range(self.max_epochs):
            for batch in loader:
                batch = [t.to(self.device) for t in batch]
                loss = self.model.training_step(batch)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.call("on_batch_end", loss)
            self.call("on_epoch_end")


class LitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 3))

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    data = TensorDataset(torch.randn(256, 20), torch.randint(0, 3, (256,)))
    Trainer(LitNet(), 2, [RunningMean()]).fit(DataLoader(data, batch_size=32, shuffle=True))
