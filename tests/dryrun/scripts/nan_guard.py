import torch
import torch.nn as nn


class Loop:
    def __init__(self, net, device):
        self.net, self.device = net.to(device), device
        self.optim = torch.optim.RMSprop(net.parameters(), lr=1e-3)
        self.skipped = 0

    def guarded_step(self, loss):
        self.optim.zero_grad()
        loss.backward()
        if torch.isnan(loss):
            self.skipped += 1
            return
        self.optim.step()

    def run(self, x, y, steps):
        for _ in range(steps):
            rows = torch.randint(0, len(x), (64,), device=self.device)
            self.guarded_step(nn.functional.huber_loss(self.net(x[rows]), y[rows]))


device = "cuda:0" if torch.cuda.is_available() else "cpu"
x = torch.rand(500, 3, device=device)
loop = Loop(nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 1)), device)
loop.run(x, x.square().sum(1, keepdim=True), steps=20)
print("skipped", loop.skipped)
