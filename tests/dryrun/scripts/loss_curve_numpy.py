import numpy as np
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# y = 2x + 1 plus noise
x = torch.linspace(-1, 1, 100, device=device).reshape(-1, 1)
y = 2 * x + 1 + 0.1 * torch.randn_like(x)

model = torch.nn.Linear(1, 1).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
history = []

for epoch in range(50):
    y_hat = model(x)
    loss = ((y_hat - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.detach().numpy())

print("first/last loss:", np.round(history[0], 3), np.round(history[-1], 3))
