import argparse

import torch
from torch import nn


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--device", default=None)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--batch-size", type=int, default=20)
    return p.parse_args()


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.hidden = hidden
        self.embed = nn.Embedding(vocab, hidden)
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2)
        self.decode = nn.Linear(hidden, vocab)

    def init_hidden(self, batch):
        shape = 2, batch, self.hidden
        return torch.zeros(shape), torch.zeros(shape)

    def forward(self, x, state):
        out, state = self.lstm(self.embed(x), state)
        return self.decode(out), state


def main():
    args = parse()
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    corpus = torch.randint(0, 50, (400, args.batch_size), device=device)
    model = CharRNN(50, args.hidden).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    state = model.init_hidden(args.batch_size)
    for i in range(0, corpus.size(0) - 1, 35):
        data, target = corpus[i : i + 35], corpus[i + 1 : i + 36]
        state = tuple(s.detach() for s in state)
        output, state = model(data[: len(target)], state)
        loss = criterion(output.flatten(0, 1), target.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()


if __name__ == "__main__":
    main()
