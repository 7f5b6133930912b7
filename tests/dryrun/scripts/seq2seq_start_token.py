import torch
import torch.nn as nn

SOS, VOCAB = 1, 30
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Encoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        _, hidden = self.gru(self.embedding(src))
        return hidden


class Decoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, hidden, target):
        token = torch.full((hidden.size(1), 1), SOS, dtype=torch.long)
        steps = []
        for t in range(target.size(1)):
            emb = self.embedding(token)
            output, hidden = self.gru(emb, hidden)
            steps.append(self.out(output))
            token = target[:, t:t + 1]  # teacher forcing
        return torch.cat(steps, dim=1)


encoder, decoder = Encoder(24).to(device), Decoder(24).to(device)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adam(params, lr=0.01)
for epoch in range(5):
    src = torch.randint(2, VOCAB, (12, 7), device=device)
    trg = src.flip(1)
    logits = decoder(encoder(src), trg)
    loss = nn.functional.cross_entropy(logits.reshape(-1, VOCAB), trg.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
