import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def try_batch(size):
    x = torch.randn(size, 32, device=device)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


batch_size = 512
while batch_size:
    try:
        for _ in range(3):
            try_batch(batch_size)
        break
    except torch.OutOfMemoryError:
        optimizer.zero_grad(set_to_none=True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        batch_size //= 2
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        batch_size //= 2
print("batch size", batch_size)
