import torch
from torch import nn

device = torch.device("cuda")
model = nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 30)).to(device)
opt = torch.optim.Adam(model.parameters())
tokens = torch.randint(0, 30, (64, 12), device=device)
for step in range(30):
    batch = tokens[torch.randperm(64, device=device)[:16]]
    keep = torch.rand(16, 12, device=device) < 0.15
    logits = model(batch.masked_fill(keep, 0))
    loss = nn.functional.cross_entropy(logits[keep], batch[keep])
    opt.zero_grad()
    loss.backward()
    opt.step()
