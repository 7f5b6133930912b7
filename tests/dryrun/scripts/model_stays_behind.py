import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 16
EPOCHS = 2
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

images = torch.rand(96, 1, 16, 16)
labels = torch.randint(0, 4, (96,))
dataloader = DataLoader(TensorDataset(images, labels), batch_size=BATCH_SIZE, shuffle=True)


def block(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1), nn.BatchNorm2d(n_out), nn.ReLU(), nn.MaxPool2d(2))


def train_step(model, batch, loss_fn, optimizer):
    X, y = batch[0].to(DEVICE), batch[1].to(DEVICE)
    y_pred = model(X)
    loss = loss_fn(y_pred, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return (y_pred.argmax(dim=1) == y).sum()


model_0 = nn.Sequential(block(1, 8), block(8, 8), nn.Flatten(), nn.Linear(8 * 4 * 4, 4))
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(params=model_0.parameters(), lr=0.1)

for epoch in range(EPOCHS):
    correct = 0
    for batch in dataloader:
        correct += train_step(model_0, batch, loss_fn, optimizer)
    print(f"Epoch: {epoch} | train acc: {correct.item() / len(images):.2f}")
