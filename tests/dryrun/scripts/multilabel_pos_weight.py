import torch
import torch.nn as nn

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')

num_tags, vocab = 5, 200
docs = torch.randint(0, vocab, (160, 12))
tags = (torch.rand(160, num_tags) < 0.2).float()

# tags are rare: weigh the positives
pos_weight = (tags == 0).sum(0) / tags.sum(0).clamp(min=1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, 32, mode="mean")
        self.fc = nn.Linear(32, num_tags)

    def forward(self, ids):
        return self.fc(self.bag(ids))


model = Tagger().to(device)
criterion = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)

for epoch in range(3):
    for ids, target in zip(docs.chunk(4), tags.chunk(4)):
        ids, target = ids.to(device), target.to(device)
        loss = criterion(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
