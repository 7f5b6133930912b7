import torch
from torch import nn
from torch.amp import GradScaler, autocast

device = "cuda"
model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = GradScaler(device)
accumulate = 2
running = torch.zeros((), device=device)
for i in range(40):
    x = torch.randn(8, 3, 16, 16).pin_memory().to(device, non_blocking=True)
    y = torch.randint(0, 5, (8,)).pin_memory().to(device, non_blocking=True)
    with autocast(device_type=device, dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y) / accumulate
    scaler.scale(loss).backward()
    running += loss.detach()
    if (i + 1) % accumulate == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
print(running.item())
