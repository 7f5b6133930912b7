import torch
import torch.nn as nn
import torch.nn.functional as F


class GCNConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o, bias=False)

    def forward(self, x, edge_index):
        src, dst = edge_index
        x = self.lin(x)
        return torch.zeros_like(x).index_add_(0, dst, x[src])


n = 50
x = torch.rand(n, 8)
edge_index = torch.randint(n, (2, 200))
y = torch.randint(3, (n,))

device = torch.device("cuda")
model, x, y = GCNConv(8, 3).to(device), x.to(device), y.to(device)
opt = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    opt.zero_grad()
    F.cross_entropy(model(x, edge_index), y).backward()
    opt.step()
