import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Learner:
    def __init__(self, device):
        self.device = device
        self.emb = nn.Embedding(50, 8).to(device)
        self.head = nn.Linear(8 + 3, 1).to(device)
        params = [*self.emb.parameters(), *self.head.parameters()]
        self.opt = torch.optim.Adam(params)

    def training_step(self, batch):
        cats, nums, target = batch
        nums = nums.to(self.device)
        target = target.to(self.device)
        both = torch.cat([self.emb(cats), nums], dim=1)
        return nn.functional.mse_loss(self.head(both).squeeze(1), target)

    def fit(self, loader, epochs=2):
        for _ in range(epochs):
            for batch in loader:
                self.opt.zero_grad()
                self.training_step(batch).backward()
                self.opt.step()


data = TensorDataset(torch.randint(50, (300,)), torch.randn(300, 3), torch.randn(300))
learner = Learner("cuda" if torch.cuda.is_available() else "cpu")
learner.fit(DataLoader(data, batch_size=32, shuffle=True))
