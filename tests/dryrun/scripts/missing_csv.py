import csv
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

with open("data/houses.csv") as f:
    rows = [[float(cell) for cell in row] for row in csv.reader(f)]

table = torch.tensor(rows, device=device)
x, y = table[:, :-1], table[:, -1:]
model = nn.Linear(x.size(1), 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for epoch in range(100):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
