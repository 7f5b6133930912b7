import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

labels = torch.multinomial(torch.tensor([0.7, 0.2, 0.1]), 240, replacement=True)
features = torch.randn(240, 6) + labels[:, None]
counts = torch.bincount(labels, minlength=3)
weights = counts.sum() / counts.float()
loader = DataLoader(TensorDataset(features, labels), batch_size=40, shuffle=True)

model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(2):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        w = weights.to(device)
        loss = F.cross_entropy(model(x), y, weight=w)
        opt.zero_grad()
        loss.backward()
        opt.step()
