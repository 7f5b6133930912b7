import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"

def valid(lengths, longest):
    steps = torch.arange(longest, device=lengths.device)
    return (steps[None, :] < lengths[:, None]).float()

class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(7, 16, batch_first=True)
        self.score = nn.Linear(16, 4)
    def forward(self, x, mask):
        h, _ = self.gru(x)
        h = h * mask.unsqueeze(-1)
        return self.score(h.sum(1) / mask.sum(1, keepdim=True))

def batches(count):
    for _ in range(count):
        yield torch.randn(10, 15, 7), torch.randint(3, 16, (10,)), torch.randint(0, 4, (10,))

def train(model, optimizer):
    for x, lengths, y in batches(5):
        x, y = x.to(device), y.to(device)
        logits = model(x, valid(lengths, x.shape[1]))
        loss = nn.functional.cross_entropy(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

model = Pool().to(device)
train(model, torch.optim.Adam(model.parameters(), lr=1e-3))
