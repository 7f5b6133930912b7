# 0-dim CPU tensors may take part in arithmetic on the device
import math
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
scale = torch.tensor(0.5)
floor = torch.tensor(1e-6)
log2 = torch.tensor(math.log(2.0))

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.05).item())
x = torch.randn(64, 4, device=device)
y = (scale * x).sum(1, keepdim=True) + floor

for step in range(12):
    diff = (model(x) - y) * scale
    loss = torch.maximum(diff.abs(), floor.to(device)).mean() / log2
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss))
