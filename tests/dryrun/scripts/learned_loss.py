import torch
from torch import nn


class LearnedScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(1))

    def forward(self, outputs, targets):
        errors = (targets - outputs) * torch.exp(-self.log_scale)
        return (errors.square() + self.log_scale).mean()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 1).to(device)
criterion = LearnedScale()
optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()], lr=0.1)
inputs, targets = torch.rand(64, 3).to(device), torch.rand(64, 1).to(device)
optimizer.zero_grad()
loss = criterion(model(inputs), targets)
loss.backward()
optimizer.step()
