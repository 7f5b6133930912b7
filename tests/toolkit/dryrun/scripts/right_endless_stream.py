import time

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def stream(data, size):
    while True:
        yield data[torch.randint(len(data), (size,))]


model = nn.Linear(8, 1).to(device)
optimizer = torch.optim.Adam(model.parameters())
batches = stream(torch.randn(100, 8), 16)
for step in range(60):
    loss = model(next(batches).to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.05)
print(next(batches).shape)
