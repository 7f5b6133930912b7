import torch
from torch import nn

dev = "cuda" if torch.cuda.is_available() else "cpu"
mlp = lambda i, o: nn.Sequential(nn.Linear(i, 24), nn.LeakyReLU(0.2), nn.Linear(24, o)).to(dev)
gen, critic = mlp(4, 2), mlp(2, 1)
opt_g = torch.optim.RMSprop(gen.parameters(), lr=5e-4)
opt_c = torch.optim.RMSprop(critic.parameters(), lr=5e-4)
fixed_noise = torch.randn(8, 4, device=dev)
samples = []

for it in range(5):
    for _ in range(2):
        real = torch.randn(32, 2).to(dev) + 3
        fake = gen(torch.randn(32, 4).to(dev)).detach()
        eps = torch.rand(32, 1, device=dev)
        mixed = (eps * real + (1 - eps) * fake).requires_grad_()
        grad, = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        penalty = (grad.norm(2, dim=1) - 1).pow(2).mean()
        loss_c = critic(fake).mean() - critic(real).mean() + 10 * penalty
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    loss_g = -critic(gen(torch.randn(32, 4, device=dev))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    with torch.no_grad():
        samples.append(gen(fixed_noise).cpu())
print(torch.stack(samples).shape)
