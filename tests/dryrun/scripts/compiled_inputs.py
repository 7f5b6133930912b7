import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
device = torch.device("cuda")


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(64, 128), nn.Linear(128, 4)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


model = torch.compile(MLP().to(device), mode="reduce-overhead")
opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)


def get_batch():
    x = torch.randn(32, 64)
    return x, (x.sum(1) > 0).long()


for step in range(100):
    x, y = get_batch()
    y = y.to(device, non_blocking=True)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
