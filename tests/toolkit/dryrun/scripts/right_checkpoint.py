import tempfile
from pathlib import Path

import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def new_run():
    model = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 1)).to(device)
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def one_step(model, optimizer):
    x = torch.randn(32, 4, device=device)
    loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "checkpoint.pth"
    model, optimizer = new_run()
    one_step(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, file)

    model, optimizer = new_run()
    state = torch.load(file, map_location=device, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    one_step(model, optimizer)

    # a state on the CPU is moved to the parameters by load_state_dict
    model, optimizer = new_run()
    state = torch.load(file, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    one_step(model, optimizer)
