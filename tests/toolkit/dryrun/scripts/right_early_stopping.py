import argparse
import copy

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()
device = torch.device(args.device if torch.cuda.is_available() else "cpu")

x = torch.randn(200, 4)
y = (x[:, 0] > x[:, 1]).float()
x_train, y_train = x[:160].to(device), y[:160].to(device)
x_val, y_val = x[160:].to(device), y[160:].to(device)

model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0)).to(device)
pos_weight = (y_train == 0).sum() / (y_train == 1).sum()
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
best, best_state = float("inf"), None

for epoch in range(args.epochs):
    model.train()
    for xb, yb in zip(x_train.split(40), y_train.split(40)):
        loss = criterion(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        val = criterion(model(x_val), y_val).item()
    plateau.step(val)
    if val < best:
        best, best_state = val, copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
print(f"best validation loss {best:.4f}")
