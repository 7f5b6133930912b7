import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_device(device)
torch.manual_seed(0)

ds = TensorDataset(torch.randn(160, 6), torch.randint(0, 2, (160,)))
dl = DataLoader(ds, batch_size=32, shuffle=True, generator=torch.Generator(device=device))

model = nn.Sequential(nn.Linear(6, 12), nn.Mish(), nn.Linear(12, 2))
weights = torch.tensor([0.4, 0.6])
optimizer = torch.optim.NAdam(model.parameters())
for epoch in range(2):
    for x, y in dl:
        loss = nn.functional.cross_entropy(model(x), y, weight=weights)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
