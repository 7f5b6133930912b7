import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

device = "cuda" if torch.cuda.is_available() else "cpu"


def train(dataloader, model, loss_fn, optimizer):
    model.train()
    for X, y in dataloader:
        X, y = X.to(device), y.to(device)
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test(dataloader, model, loss_fn):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            y = y.to(device)
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).sum().item()
    print(f"Accuracy: {100 * correct / len(dataloader.dataset):>0.1f}%, avg loss: {test_loss / len(dataloader):>8f}")


full = TensorDataset(torch.randn(250, 9), torch.randint(0, 2, (250,)))
train_ds, test_ds = random_split(full, [200, 50])
train_loader = DataLoader(train_ds, batch_size=40, shuffle=True)
test_loader = DataLoader(test_ds, batch_size=50)

model = nn.Sequential(nn.Linear(9, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 2)).to(device)
for t in range(3):
    train(train_loader, model, nn.CrossEntropyLoss(), optimizer := torch.optim.SGD(model.parameters(), lr=1e-2))
    test(test_loader, model, nn.CrossEntropyLoss())
