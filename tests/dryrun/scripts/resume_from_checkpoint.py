import os
import tempfile
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
path = os.path.join(tempfile.mkdtemp(), "last.pt")


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def save_pretrained():
    """What an earlier run on a laptop left behind."""
    model = build()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model(torch.randn(8, 4)).mean().backward()
    for p in model.parameters():
        optimizer.state[p] = {
            "step": torch.tensor(1.0),
            "exp_avg": p.grad.clone(),
            "exp_avg_sq": p.grad.square(),
        }
    torch.save({"model": model.state_dict(), "optim": optimizer.state_dict(), "epoch": 3}, path)


save_pretrained()

model = build()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
checkpoint = torch.load(path, map_location="cpu")
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optim"])
model.to(device)

for epoch in range(checkpoint["epoch"], 6):
    x = torch.randn(16, 4, device=device)
    loss = (model(x) - x.sum(1, keepdim=True)).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
os.remove(path)
