import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    """Focal loss with one alpha per class."""

    def __init__(self, alpha, gamma=2.0):
        super().__init__()
        self.alpha = torch.as_tensor(alpha)
        self.gamma = gamma

    def forward(self, logits, target):
        logp = F.log_softmax(logits, dim=1)
        logp = logp.gather(1, target[:, None]).squeeze(1)
        p = logp.exp()
        a = self.alpha[target]
        return (-a * (1 - p) ** self.gamma * logp).mean()


def get_device():
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("cpu")


def run(epochs=2):
    device = get_device()
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3)).to(device)
    criterion = FocalLoss([0.1, 0.3, 0.6]).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    inputs = torch.randn(90, 6)
    targets = torch.randint(0, 3, (90,))
    for _ in range(epochs):
        for i in range(0, 90, 30):
            x, t = inputs[i:i + 30].to(device), targets[i:i + 30].to(device)
            optimizer.zero_grad()
            loss = criterion(model(x), t)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    run()
