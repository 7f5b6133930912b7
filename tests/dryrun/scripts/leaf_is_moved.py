import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(64, 100).to(device)
y = torch.randn(64, 10).to(device)
w1 = torch.randn(100, 20, requires_grad=True).to(device)
w2 = torch.randn(20, 10, requires_grad=True).to(device)

for t in range(50):
    y_pred = x.mm(w1).clamp(min=0).mm(w2)
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w1 -= 1e-6 * w1.grad
        w2 -= 1e-6 * w2.grad
        w1.grad.zero_()
        w2.grad.zero_()
