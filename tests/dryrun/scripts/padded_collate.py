import random
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sentences(Dataset):
    def __init__(self, n):
        rng = random.Random(0)
        self.rows = [[rng.randrange(1, 50) for _ in range(rng.randint(3, 9))] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return torch.tensor(row), float(sum(row) % 2)


def collate(batch):
    seqs, targets = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(targets)


class MeanPool(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16, padding_idx=0)
        self.out = nn.Linear(16, 1)

    def forward(self, tokens, lengths):
        h = self.emb(tokens)
        mask = torch.arange(tokens.size(1), device=tokens.device)[None, :] < lengths[:, None]
        h = (h * mask[..., None]).sum(1) / lengths[:, None]
        return self.out(h).squeeze(-1)


loader = DataLoader(Sentences(64), batch_size=16, collate_fn=collate)
model = MeanPool().to(device)
opt = torch.optim.Adam(model.parameters())
bce = nn.BCEWithLogitsLoss()
for tokens, lengths, targets in loader:
    tokens, targets = tokens.to(device), targets.to(device)
    loss = bce(model(tokens, lengths), targets)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ok", loss.item())
