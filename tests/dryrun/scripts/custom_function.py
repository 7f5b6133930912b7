import torch
from torch import nn


class ClippedSign(torch.autograd.Function):
    """Binary activations with a straight-through gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, grad_output):
        x, = ctx.saved_tensors
        limit = torch.ones(x.size(-1))
        inside = x.abs() <= limit
        return grad_output * inside


class BinaryNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 32)
        self.b = nn.Linear(32, 2)

    def forward(self, x):
        return self.b(ClippedSign.apply(self.a(x)))


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = BinaryNet().to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(64, 16, device=device)
y = (x.sum(1) > 0).long()
for i in range(10):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
