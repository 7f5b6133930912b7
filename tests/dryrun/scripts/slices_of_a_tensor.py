import torch

torch.manual_seed(42)
device = "cuda" if torch.cuda.is_available() else "cpu"

N, BATCH = 400, 50
X_train = torch.randn(N, 8)
y_train = (X_train[:, 0] * X_train[:, 1] > 0).float()
X_train = X_train.to(device)

model = torch.nn.Sequential(
    torch.nn.Linear(8, 16),
    torch.nn.Tanh(),
    torch.nn.Linear(16, 1),
).to(device)
loss_fn = torch.nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(3):
    order = torch.randperm(N)
    for i in range(0, N, BATCH):
        idx = order[i:i + BATCH]
        xb = X_train[idx]
        yb = y_train[idx]
        y_logits = model(xb).squeeze(1)
        loss = loss_fn(y_logits, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
