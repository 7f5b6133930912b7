import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class LitClassifier(nn.Module):
    def __init__(self, hidden=32, lr=1e-3):
        super().__init__()
        self.lr = lr
        self.backbone = nn.Sequential(nn.Linear(20, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 3)
        self.class_weights = torch.tensor([0.2, 0.3, 0.5])

    def forward(self, x):
        return self.head(self.backbone(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y, weight=self.class_weights)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


class MiniTrainer:
    def __init__(self, max_epochs, accelerator="auto"):
        self.max_epochs = max_epochs
        if accelerator == "auto":
            accelerator = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(accelerator)

    def fit(self, module, loader):
        module.to(self.device).train()
        optimizer = module.configure_optimizers()
        for _ in range(self.max_epochs):
            for batch_idx, batch in enumerate(loader):
                batch = [t.to(self.device, non_blocking=True) for t in batch]
                loss = module.training_step(batch, batch_idx)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


data = TensorDataset(torch.randn(120, 20), torch.randint(0, 3, (120,)))
MiniTrainer(max_epochs=2).fit(LitClassifier(), DataLoader(data, batch_size=24, pin_memory=torch.cuda.is_available()))
