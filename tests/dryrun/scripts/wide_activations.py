import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
batch_size = 128

model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(64 * 16, 2),
).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(2):
    images = torch.rand(batch_size, 3, 64, 64, device=device)
    labels = torch.randint(0, 2, (batch_size,), device=device)
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained")
