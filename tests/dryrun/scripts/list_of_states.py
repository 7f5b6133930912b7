import torch
import torch.nn as nn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

class Prefetch:
    """Moves each batch."""
    def put(self, obj):
        if torch.is_tensor(obj):
            obj = obj.cuda() if DEVICE == "cuda" else obj
        elif type(obj) is tuple:
            obj = tuple(map(self.put, obj))
        return obj

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.out = nn.Linear(32, 5)
    def forward(self, tokens, states):
        hidden, states = self.rnn(self.embed(tokens), states)
        return self.out(hidden), states

def main():
    put = Prefetch().put
    model = Tagger().to(DEVICE)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    states = [torch.zeros(1, 8, 32), torch.zeros(1, 8, 32)]
    states = put(states)
    for step in range(3):
        tokens = put(torch.randint(0, 50, (8, 12)))
        tags = put(torch.randint(0, 5, (8, 12)))
        logits, _ = model(tokens, states)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tags.flatten())
        opt.zero_grad(); loss.backward(); opt.step()

main()
