import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, model, optimizer, criterion, device="cpu"):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion
        self.device = device

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for inputs, targets in loader:
                inputs = inputs.to(self.device)
                targets = targets.to(self.device)
                loss = self.criterion(self.model(inputs), targets)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
x = torch.randn(40, 5)
loader = DataLoader(TensorDataset(x, x[:, :1]), batch_size=10)
trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.1), nn.MSELoss())
trainer.fit(loader, 2)
