import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.cuda.set_device(device=0)
torch.cuda.manual_seed_all(seed=3)
print(torch.cuda.get_device_name(device=device))
print(torch.cuda.get_device_properties(device=device).total_memory)
print(torch.cuda.get_device_capability(device=device))
state = torch.cuda.get_rng_state(device=device)
half = torch.cuda.is_bf16_supported(including_emulation=False)

model = nn.Linear(64, 8).to(device=device)
optimizer = torch.optim.AdamW(model.parameters())
torch.cuda.reset_peak_memory_stats(device=device)
for step in range(10):
    x = torch.randn(32, 64, device=device)
    with torch.autocast(device.type, torch.bfloat16, enabled=half):
        loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.cuda.synchronize(device=device)
free, total = torch.cuda.mem_get_info(device=device)
print(torch.cuda.max_memory_allocated(device=device), free <= total)
torch.cuda.set_rng_state(new_state=state, device=device)
with torch.cuda.device(device=device):
    print(torch.cuda.memory_stats(device=device)["allocated_bytes.all.peak"])
