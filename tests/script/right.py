"""A training script without a mistake, and what the rules find in a changed one."""

from core.script.check import check
from core.script.syntax import Finding

RIGHT = """\
import time
import torch
from torch import nn
from torch.utils.data import DataLoader

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        x = self.dropout(x.flatten(1))
        return self.fc(x)

def main(train_set, test_set):
    device = torch.accelerator.current_accelerator(check_available=True) or "cpu"
    train_loader = DataLoader(train_set, batch_size=64, num_workers=2)
    test_loader = DataLoader(test_set, batch_size=64)
    model = Net()
    model = model.to(device)
    model.load_state_dict(torch.load("net.pt", map_location=device))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters())
    total = torch.zeros((), device=device)
    for epoch in range(5):
        model.train()
        torch.accelerator.synchronize()
        began = time.perf_counter()
        for step, (inputs, labels) in enumerate(train_loader):
            inputs = inputs.to(device)
            labels = labels.to(device)
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            if step % 100 == 0:
                print(loss.item())
        torch.accelerator.synchronize()
        print(time.perf_counter() - began)
        model.eval()
        correct = 0
        with torch.inference_mode():
            for inputs, labels in test_loader:
                outputs = model(inputs.to(device))
                correct += (outputs.argmax(1) == labels.to(device)).sum()

if __name__ == "__main__":
    main(*sets())
"""


def changed(*changes: str) -> list[Finding]:
    """What is found where each "old -> new" was changed in the right script."""
    text = RIGHT
    for change in changes:
        old, new = change.split(" -> ")
        assert old in text
        text = text.replace(old, new)
    return list(check(text).findings)


def slugs(*changes: str) -> list[tuple[str, str]]:
    """The mistake of each finding, and how sure it is."""
    return [(finding.slug, finding.sureness) for finding in changed(*changes)]


def lines(*changes: str) -> list[str]:
    """The line of each finding, as it stands in the changed script."""
    text = RIGHT
    for change in changes:
        text = text.replace(*change.split(" -> "))
    return [
        text.splitlines()[finding.line - 1].strip() for finding in changed(*changes)
    ]
