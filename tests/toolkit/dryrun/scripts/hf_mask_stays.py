from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor


class Texts(Dataset):
    def __init__(self, n=128):
        self.lengths = torch.randint(4, 12, (n,)).tolist()

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return {"input_ids": torch.randint(1, 100, (self.lengths[i],)), "labels": i % 2}


def collate(rows):
    ids = nn.utils.rnn.pad_sequence([r["input_ids"] for r in rows], batch_first=True)
    return {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "labels": torch.tensor([r["labels"] for r in rows]),
    }


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 16, padding_idx=0)
        self.head = nn.Linear(16, 2)

    def forward(self, input_ids, attention_mask, labels=None):
        hidden = self.embed(input_ids)
        mask = attention_mask.unsqueeze(-1).float()
        logits = self.head((hidden * mask).sum(1) / mask.sum(1))
        return Output(nn.functional.cross_entropy(logits, labels), logits)


device = "cuda" if torch.cuda.is_available() else "cpu"
model = Classifier()
model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 / (s + 1))
model.train()
for epoch in range(2):
    for batch in DataLoader(Texts(), batch_size=16, collate_fn=collate):
        batch["input_ids"] = batch["input_ids"].to(device)
        batch["labels"] = batch["labels"].to(device)
        outputs = model(**batch)
        outputs.loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
