import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
x, y = torch.randn(150, 5), torch.randint(0, 3, (150,))
loader = DataLoader(TensorDataset(x, y), batch_size=50)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
optimizer = torch.optim.Adam(net.parameters())

for epoch in range(2):
    net.train()
    losses = []
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    print('mean loss', torch.stack(losses).mean().item())

net.eval()
confusion = np.zeros((3, 3), dtype=int)
with torch.no_grad():
    for inputs, labels in loader:
        pred = net(inputs.to(device)).argmax(1).cpu().numpy()
        np.add.at(confusion, (labels.numpy(), pred), 1)
weights = net[0].weight.detach().cpu().numpy()
print(confusion, weights.shape)
