import numpy as np
import torch
from torch import nn

device_type = "cuda" if torch.cuda.is_available() else "cpu"
device = torch.device(device_type)


def mixup(x, y, alpha=0.4):
    lam = torch.from_numpy(np.random.beta(alpha, alpha, size=(x.size(0), 1)).astype("float32"))
    perm = torch.randperm(x.size(0), device=x.device)
    mixed = lam * x + (1 - lam) * x[perm]
    return mixed, y, y[perm], lam


model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scaler = torch.amp.GradScaler(device_type, enabled=device_type == "cuda")
ce = nn.CrossEntropyLoss(reduction="none")

for step in range(8):
    inputs = torch.randn(32, 20).to(device, non_blocking=True)
    targets = torch.randint(0, 4, (32,)).to(device, non_blocking=True)
    inputs, ta, tb, lam = mixup(inputs, targets)
    with torch.autocast(device_type=device_type, dtype=torch.float16 if device_type == "cuda" else torch.bfloat16):
        out = model(inputs)
        lam = lam.squeeze(1)
        loss = (lam * ce(out, ta) + (1 - lam) * ce(out, tb)).mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
