import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
g = torch.Generator(device=device).manual_seed(42)

full = TensorDataset(torch.rand(100, 3), torch.rand(100, 1))
train_set, val_set = random_split(full, [80, 20], generator=g)
model = nn.Linear(3, 1).to(device)
opt = torch.optim.SGD(model.parameters(), lr=.01)
for x, y in DataLoader(train_set, batch_size=10, shuffle=True):
    loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
    opt.zero_grad()
    loss.backward()
    opt.step()
