import torch
from torch import nn


def positional(length, width):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-9.21 / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embed = nn.Embedding(40, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        x = self.embed(tokens)
        x = x + positional(x.shape[1], x.shape[2])
        return self.head(self.layers(x).mean(1))


model = Encoder().cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(10):
    tokens = torch.randint(0, 40, (8, 12)).cuda()
    labels = torch.randint(0, 2, (8,)).cuda()
    loss = nn.functional.cross_entropy(model(tokens), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
