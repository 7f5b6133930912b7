import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
torch.manual_seed(0)
X = torch.rand(512, 8)
y = X.sum(dim=1, keepdim=True)
train_loader = DataLoader(TensorDataset(X, y), batch_size=64)


class SimpleRegressionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.out(x)


model = SimpleRegressionNet()
model = model.to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(3):
    total = 0.0
    for batch_X, batch_y in train_loader:
        batch_X = batch_X.to(device)
        batch_y = batch_y.to(device)
        optimizer.zero_grad()
        outputs = model(batch_X)
        loss = criterion(outputs, batch_y)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"Epoch {epoch + 1}, loss: {total / len(train_loader):.4f}")
print("The weights are on", model.out.weight.device)
