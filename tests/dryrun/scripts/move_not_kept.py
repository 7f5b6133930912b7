import torch
import torch.nn as nn
from torch.utils.data import TensorDataset, DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

X = torch.randn(300, 5)
y = X @ torch.tensor([1.0, -2.0, 0.5, 3.0, 0.0]).unsqueeze(1) + 0.1 * torch.randn(300, 1)
loader = DataLoader(TensorDataset(X, y), batch_size=60)

model = nn.Linear(5, 1)
model.to(device)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(4):
    running = 0.0
    for batch_X, batch_y in loader:
        batch_X.to(device)
        batch_y.to(device)
        pred = model(batch_X)
        loss = criterion(pred, batch_y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print('Epoch [%d/4] loss %.4f' % (epoch + 1, running / len(loader)))
