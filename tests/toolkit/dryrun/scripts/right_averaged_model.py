import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(192, 10)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32)
net = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)).to(device)
ema = AveragedModel(net, device=device, multi_avg_fn=get_ema_multi_avg_fn(0.99))
optimizer = torch.optim.AdamW(net.parameters())
for epoch in range(3):
    net.train()
    for inputs, targets in loader:
        loss = (net(inputs.to(device)) - targets.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update_parameters(net)
update_bn(loader, ema, device=device)
ema.eval()
with torch.no_grad():
    print(ema(x.to(device)).mean().item())
