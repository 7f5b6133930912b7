import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
device = torch.get_default_device()
data = TensorDataset(torch.randn(96, 6), torch.randn(96, 1))
loader = DataLoader(data, batch_size=24, shuffle=True, generator=torch.Generator(device=device))
w = torch.zeros(6, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.1)
for epoch in range(4):
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(x @ w + b, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
