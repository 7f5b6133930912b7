import torch
from torch import nn

text = "to be or not to be that is the question " * 20
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
encoded = torch.tensor([stoi[c] for c in text], device=device)


class CharLSTM(nn.Module):
    def __init__(self, vocab, hidden=32, layers=1):
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.embed = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def init_hidden(self, batch):
        h = torch.zeros(self.layers, batch, self.hidden)
        c = torch.zeros(self.layers, batch, self.hidden)
        return h, c

    def forward(self, x, state):
        out, state = self.lstm(self.embed(x), state)
        return self.head(out), state


model = CharLSTM(len(chars)).to(device)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
seq, batch = 20, 8
for step in range(10):
    state = model.init_hidden(batch)
    start = torch.randint(0, len(encoded) - seq - 1, (batch,)).tolist()
    x = torch.stack([encoded[s:s + seq] for s in start])
    y = torch.stack([encoded[s + 1:s + seq + 1] for s in start])
    logits, state = model(x, state)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
