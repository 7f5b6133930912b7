import copy
import torch
from torch import nn

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")


class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.mul_(self.decay).add_(p, alpha=1 - self.decay)


model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1))
ema = EMA(model)
model = model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)

x = torch.randn(100, 5).to(device)
y = x.pow(2).sum(1, keepdim=True)
for step in range(15):
    loss = (model(x) - y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
