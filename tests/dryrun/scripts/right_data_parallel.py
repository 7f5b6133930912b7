import torch
import torch.nn as nn


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(60, 16)
        self.register_buffer("positions", torch.arange(10))
        self.pos_embedding = nn.Embedding(10, 16)
        self.blocks = nn.ModuleList([nn.Linear(16, 16) for _ in range(2)])
        self.out = nn.Linear(16, 60)

    def forward(self, ids):
        h = self.embedding(ids) + self.pos_embedding(self.positions[: ids.size(1)])
        for block in self.blocks:
            h = h + torch.relu(block(h))
        return self.out(h)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = ToyModel()
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model)
model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for step in range(6):
    ids = torch.randint(0, 60, (8, 10)).to(device)
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
