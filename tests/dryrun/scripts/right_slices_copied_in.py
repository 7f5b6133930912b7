"""Slices of a device tensor may be filled from the CPU: that is a copy."""
import torch
import torch.nn.functional as F

device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
buffer = torch.empty(32, 10, device=device)
goal = torch.empty(32, dtype=torch.long, device=device)
model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.SELU(), torch.nn.Linear(20, 4)).to(device)
ema = {k: torch.zeros_like(v) for k, v in model.state_dict().items()}
opt = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(8):
    buffer[:16] = torch.randn(16, 10)
    buffer[16:].copy_(torch.rand(16, 10))
    goal.copy_(torch.randint(0, 4, (32,)))
    buffer[0, 0] = 0.5
    buffer[:, 1] *= torch.tensor(2.0)
    loss = F.cross_entropy(model(buffer), goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
    for k, v in model.state_dict().items():
        ema[k].lerp_(v, 0.1)
model.load_state_dict({k: v.cpu() for k, v in ema.items()})  # copies into the device's parameters
