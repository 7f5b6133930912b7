import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_CLASSES = 6


def to_onehot(labels, n):
    out = torch.zeros(labels.size(0), n, device=device)
    return out.scatter_(1, labels.view(-1, 1), 1.0)


# softmax regression by hand, no nn.Module
W = torch.zeros(10, NUM_CLASSES, device=device, requires_grad=True)
b = torch.zeros(NUM_CLASSES, device=device, requires_grad=True)
opt = torch.optim.SGD([W, b], lr=0.5)

for step in range(10):
    x = torch.randn(32, 10)
    y = x[:, :NUM_CLASSES].argmax(1)
    x = x.to(device)
    log_p = (x @ W + b).log_softmax(1)
    loss = -(to_onehot(y, NUM_CLASSES) * log_p).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
