import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        length = 3 + index % 7
        return torch.randn(length, 8), index % 2


def collate_fn(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True), lengths, torch.tensor(labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, h = self.rnn(packed)
        return self.out(h[-1])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Tagger().to(device)
opt = torch.optim.Adam(model.parameters())
for x, lengths, y in DataLoader(Sentences(), batch_size=16, collate_fn=collate_fn):
    x, y = x.to(device), y.to(device)
    loss = nn.functional.cross_entropy(model(x, lengths), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
