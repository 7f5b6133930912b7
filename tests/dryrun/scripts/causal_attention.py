import math
import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        future = torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)
        att = att.masked_fill(future, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(B, T, C))


class TinyGPT(nn.Module):
    def __init__(self, vocab=40, n_embd=32, block=16):
        super().__init__()
        self.tok = nn.Embedding(vocab, n_embd)
        self.pos = nn.Parameter(torch.zeros(block, n_embd))
        self.attn = CausalSelfAttention(n_embd, 4)
        self.ln = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[:idx.size(1)]
        return self.head(self.ln(x + self.attn(x)))


device = "cuda" if torch.cuda.is_available() else "cpu"
gpt = TinyGPT().to(device)
opt = torch.optim.AdamW(gpt.parameters(), lr=1e-3)
for it in range(5):
    chunk = torch.randint(0, 40, (8, 17)).to(device)
    logits = gpt(chunk[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 40), chunk[:, 1:].reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
