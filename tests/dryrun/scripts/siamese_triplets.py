import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Triplets(Dataset):
    def __init__(self, n=60):
        self.base = torch.rand(n, 1, 12, 12)

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        anchor = self.base[i]
        positive = anchor + 0.05 * torch.randn_like(anchor)
        negative = self.base[(i + 1) % len(self)]
        return anchor, positive, negative


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2)
        self.fc = nn.Linear(4 * 5 * 5, 8)

    def forward(self, img):
        h = torch.relu(self.conv(img))
        return nn.functional.normalize(self.fc(h.flatten(1)), dim=1)


embed = Embedder().to(device)
triplet = nn.TripletMarginLoss(margin=0.5)
optim = torch.optim.Adam(embed.parameters(), lr=1e-3)

for epoch in range(3):
    for a, p, n in DataLoader(Triplets(), batch_size=20, shuffle=True):
        a, p = a.to(device), p.to(device)
        loss = triplet(embed(a), embed(p), embed(n))
        optim.zero_grad()
        loss.backward()
        optim.step()
