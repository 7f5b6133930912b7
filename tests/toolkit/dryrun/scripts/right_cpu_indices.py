"""All data lives on the device, the sampler does not: an index may be on the CPU."""
import torch
import torch.nn.functional as F

device = "cuda:0" if torch.cuda.is_available() else "cpu"
features = torch.randn(300, 6, device=device)
targets = features.argmax(dim=1)
held_out = torch.zeros(300, dtype=torch.bool)
held_out[::10] = True

weight = torch.zeros(6, 6, device=device).requires_grad_()
optimizer = torch.optim.Adam([weight], lr=0.1)

for epoch in range(3):
    order = torch.randperm(300)
    order = order[~held_out[order]]
    for rows in order.split(90):
        loss = F.cross_entropy(features[rows] @ weight, targets[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    guesses = (features[held_out] @ weight).argmax(1)
    accuracy = (guesses == targets[held_out]).float().mean()
print("held out:", accuracy.item())
