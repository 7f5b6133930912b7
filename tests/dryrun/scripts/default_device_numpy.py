import numpy as np
import torch
from torch import nn

torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")

rng = np.random.default_rng(1)
features = rng.normal(size=(128, 4)).astype(np.float32)
prices = features @ np.array([3.0, -1.0, 0.5, 2.0], dtype=np.float32)

x = torch.from_numpy(features)
y = torch.tensor(prices).unsqueeze(1)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.RMSprop(model.parameters(), lr=1e-2)

for step in range(20):
    pred = model(x)
    loss = nn.functional.mse_loss(pred, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("final", loss.item())
