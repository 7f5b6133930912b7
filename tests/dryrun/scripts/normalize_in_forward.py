import torch
from torch import nn


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(144, 3))
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)

    def forward(self, x):
        x = (x - self.mean.to(x.device)) / self.std.to(x.device)
        return self.backbone(x)


device = torch.device("cuda")
net = Wrapped().to(device)
opt = torch.optim.SGD(net.parameters(), 1e-3)
for step in range(6):
    img, lab = torch.rand(2, 3, 8, 8).to(device), torch.randint(3, (2,)).to(device)
    loss = nn.functional.cross_entropy(net(img), lab)
    opt.zero_grad()
    loss.backward()
    opt.step()
