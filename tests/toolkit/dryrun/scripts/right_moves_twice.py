import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.rnn = nn.GRU(5, 16, batch_first=True)
        self.fc = nn.Linear(16, 2)
        self.to(device)

    def forward(self, x):
        x = x.to(self.device)  # to be safe
        out, _ = self.rnn(x)
        return self.fc(out[:, -1])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(device).to(device)
criterion = nn.CrossEntropyLoss().to(device)
opt = torch.optim.Adam(model.parameters(), lr=0.01)

for i in range(8):
    seq = torch.randn(10, 7, 5).to(device)
    seq = seq.to(device)
    labels = torch.randint(2, (10,)).to(device).to(torch.int64)
    opt.zero_grad()
    criterion(model(seq), labels).backward()
    opt.step()
assert next(model.parameters()).device.type == device.type
