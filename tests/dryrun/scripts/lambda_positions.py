import torch
from torch import nn

vocab_size, block_size, dim = 27, 12, 32
device = "cuda" if torch.cuda.is_available() else "cpu"

positions = lambda n: torch.arange(n)

class BowLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, dim)
        self.position_embedding = nn.Embedding(block_size, dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())
        self.lm_head = nn.Linear(dim, vocab_size)

    def forward(self, idx, targets=None):
        b, t = idx.shape
        tok = self.token_embedding(idx)
        pos = self.position_embedding(positions(t))
        x = self.mix(tok + pos).cumsum(1)
        logits = self.lm_head(x)
        if targets is None:
            return logits, None
        loss = nn.functional.cross_entropy(logits.view(b * t, -1), targets.reshape(-1))
        return logits, loss

data = torch.randint(0, vocab_size, (1000,))

def get_batch():
    ix = torch.randint(len(data) - block_size, (16,))
    x = torch.stack([data[i:i+block_size] for i in ix])
    y = torch.stack([data[i+1:i+block_size+1] for i in ix])
    return x.to(device), y.to(device)

m = BowLM().to(device)
optimizer = torch.optim.AdamW(m.parameters(), lr=1e-3)
for steps in range(10):
    xb, yb = get_batch()
    logits, loss = m(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
