import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if torch.cuda.is_available():
    torch.set_default_device("cuda")

ds = TensorDataset(torch.randn(200, 10), torch.randint(0, 2, (200,)))
dl = DataLoader(ds, batch_size=20, shuffle=True)

clf = nn.Sequential(nn.Linear(10, 10), nn.SiLU(), nn.Linear(10, 2))
opt = torch.optim.SGD(clf.parameters(), lr=0.05, nesterov=True, momentum=0.9)

for epoch in range(2):
    for xb, yb in dl:
        opt.zero_grad()
        nn.functional.cross_entropy(clf(xb), yb).backward()
        opt.step()
