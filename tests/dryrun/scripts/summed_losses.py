import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.randn(320, 30), torch.randint(0, 2, (320,))), batch_size=32)


def train_one_epoch(model, optimizer, criterion):
    total_loss = 0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total_loss += loss
    return total_loss / len(loader)


model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 2)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    avg = train_one_epoch(model, optimizer, nn.CrossEntropyLoss())
    print(epoch, avg.item())
