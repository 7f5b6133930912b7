import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 32)
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


model = Regressor().to(device)
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(50, 6).to(device), torch.randn(50, 1).to(device)
for epoch in range(5):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
