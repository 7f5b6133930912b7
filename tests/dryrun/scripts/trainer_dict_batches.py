import torch
from torch.utils.data import Dataset, DataLoader


class Shapes(Dataset):
    def __init__(self, n=96):
        self.images = torch.rand(n, 64)
        self.labels = (self.images.mean(1) > 0.5).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return {"image": self.images[i], "label": self.labels[i], "id": i}


class Trainer:
    def __init__(self, model, loader, lr=1e-2, device=None):
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.loader = loader
        self.loss = torch.nn.CrossEntropyLoss()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=lr)

    def prepare(self, batch):
        batch["image"] = batch["image"].to(self.device)
        return batch

    def step(self, batch):
        logits = self.model(batch["image"])
        loss = self.loss(logits, batch["label"])
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            total = 0
            for batch in self.loader:
                total = total + self.step(self.prepare(batch))
            print(epoch, (total / len(self.loader)).item())


net = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.GELU(), torch.nn.Linear(32, 2))
Trainer(net, DataLoader(Shapes(), batch_size=32, shuffle=True)).fit(3)
