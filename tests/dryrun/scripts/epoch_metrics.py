import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Accuracy:
    def __init__(self):
        self.reset()

    def reset(self):
        self.preds, self.targets = [], []

    def update(self, preds, targets):
        self.preds.append(preds)
        self.targets.append(targets)

    def compute(self):
        preds, targets = torch.cat(self.preds), torch.cat(self.targets)
        return (preds == targets).float().mean().item()


device = "cuda" if torch.cuda.is_available() else "cpu"
data = TensorDataset(torch.randn(64, 10), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=32)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
metric = Accuracy()

for epoch in range(5):
    metric.reset()
    for x, y in loader:
        logits = model(x.to(device))
        loss = nn.functional.cross_entropy(logits, y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        metric.update(logits.argmax(1), y)
    print(f"epoch {epoch}: accuracy {metric.compute():.3f}")
