import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocab=50, dim=32, length=20):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        pe = torch.randn(length, dim) * 0.1
        self.register_buffer("pe", pe, persistent=False)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids, pad):
        T = ids.size(1)
        mask = torch.triu(torch.ones(T, T, dtype=torch.bool, device=ids.device), 1)
        h = self.embed(ids) + self.pe[:T]
        h = self.layer(h, src_mask=mask, src_key_padding_mask=pad)
        return self.out(h)


device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
model = Model().to(device)
ema = torch.optim.swa_utils.AveragedModel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(5):
    ids = torch.randint(1, 50, (4, 12), device=device)
    pad = torch.zeros(4, 12, dtype=torch.bool, device=device)
    pad[:, -2:] = True
    logits = model(ids, pad)
    loss = nn.functional.cross_entropy(logits[:, :-3].flatten(0, 1), ids[:, 1:-2].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update_parameters(model)
