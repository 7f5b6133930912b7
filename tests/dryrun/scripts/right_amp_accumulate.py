import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
use_amp = device.type == "cuda"
dtype = torch.bfloat16 if not use_amp or torch.cuda.is_bf16_supported() else torch.float16

model = nn.Sequential(nn.Conv1d(2, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 14, 3)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
accumulation_steps = 2

for i in range(10):
    x = torch.randn(16, 2, 16, device=device)
    y = torch.randint(0, 3, (16,), device=device)
    with torch.autocast(device_type=device.type, dtype=dtype, enabled=use_amp):
        loss = F.cross_entropy(model(x), y) / accumulation_steps
    scaler.scale(loss).backward()
    if (i + 1) % accumulation_steps == 0:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
