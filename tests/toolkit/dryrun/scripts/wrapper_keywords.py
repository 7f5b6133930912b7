import torch
from torch import nn
from torch.utils._pytree import tree_map

class OnGPU(nn.Module):
    """Runs a model on the GPU, whatever device its inputs are on."""
    def __init__(self, inner):
        super().__init__()
        self.device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
        self.inner = inner.to(self.device)
    def forward(self, *inputs, **options):
        inputs = tree_map(lambda t: t.to(self.device) if isinstance(t, torch.Tensor) else t, inputs)
        return self.inner(*inputs, **options)

class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 2)
    def forward(self, tokens, padding=None):
        x = self.embed(tokens)
        x, _ = self.attention(x, x, x, key_padding_mask=padding)
        return self.head(x.mean(1))

model = OnGPU(Attend())
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    tokens = torch.randint(1, 40, (8, 10))
    padding = torch.zeros(8, 10, dtype=torch.bool)
    padding[:, 7:] = True
    labels = torch.randint(0, 2, (8,))
    logits = model(tokens, padding=padding)
    loss = nn.functional.cross_entropy(logits, labels.to(logits.device))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
