import gc
import torch
from torch import nn


def report(tag):
    if torch.cuda.is_available():
        mb = torch.cuda.memory_allocated() / 2**20
        peak = torch.cuda.max_memory_allocated() / 2**20
        print(f"{tag}: {mb:.2f} MiB, peak {peak:.2f} MiB, reserved {torch.cuda.memory_reserved() / 2**20:.2f} MiB")


def fit(device):
    model = nn.Sequential(nn.Linear(50, 100), nn.ReLU(), nn.Linear(100, 1)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    report("model")
    for epoch in range(4):
        x = torch.rand(64, 50, device=device)
        loss = nn.functional.mse_loss(model(x).squeeze(-1), x.sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report(f"epoch {epoch}")


if torch.cuda.is_available():
    torch.cuda.reset_peak_memory_stats()
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
fit(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
gc.collect()
if torch.cuda.is_available():
    torch.cuda.empty_cache()
report("after")
