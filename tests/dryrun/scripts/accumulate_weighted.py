"""Gradient accumulation: an effective batch of 64 from micro-batches of 16."""
import torch
import torch.nn.functional as F
from torch import nn

ACCUM = 4
device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

x = torch.randn(512, 12)
y = torch.randint(0, 4, (512,))
w = torch.rand(512) + 0.5

net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 4))
net.to(device)
opt = torch.optim.SGD(net.parameters(), lr=0.1)

micro = zip(x.split(16), y.split(16), w.split(16))
opt.zero_grad()
for i, (xb, yb, wb) in enumerate(micro, start=1):
    xb = xb.to(device)
    yb = yb.to(device)
    per_sample = F.cross_entropy(net(xb), yb, reduction="none")
    loss = (per_sample * wb).mean() / ACCUM
    loss.backward()
    if i % ACCUM == 0:
        opt.step()
        opt.zero_grad()
