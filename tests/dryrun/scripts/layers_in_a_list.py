import torch
import torch.nn as nn


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []
        for n_in, n_out in zip(sizes[:-1], sizes[1:]):
            self.layers.append(nn.Linear(n_in, n_out))
        self.head = nn.Linear(sizes[-1], 1)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def main():
    device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    model = MLP([3, 32, 32]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lr_sched = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    inputs = torch.rand(200, 3, device=device)
    targets = inputs.prod(dim=1, keepdim=True)
    for epoch in range(10):
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        lr_sched.step()


main()
