import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
wave = torch.sin(torch.arange(0, 400) * 0.1)
series = wave.unfold(0, 40, 40).to(device)  # 10 rows of 40 steps


class Forecast(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.cell = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def zero_state(self, n):
        w = next(self.parameters())
        return w.new_zeros(1, n, 16), w.new_zeros(1, n, 16)

    def forward(self, x, state):
        h, state = self.cell(x, state)
        return self.head(h), state


net = Forecast().to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(2):
    state = net.zero_state(10)
    losses = []
    for i in range(0, 36, 9):
        x, y = series[:, i:i + 9, None], series[:, i + 1:i + 10, None]
        pred, state = net(x, tuple(s.detach() for s in state))
        loss = ((pred - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    print(epoch, sum(losses).item() / len(losses))
