import argparse
import torch
from torch import nn

parser = argparse.ArgumentParser(description="toy diffusion")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
parser.add_argument("--timesteps", type=int, default=50)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

device = torch.device(args.device)
gen = torch.Generator().manual_seed(args.seed)
betas = torch.linspace(1e-4, 0.02, args.timesteps, device=device)
alpha_bar = torch.cumprod(1 - betas, dim=0)

denoiser = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 2)).to(device)
opt = torch.optim.AdamW(denoiser.parameters(), lr=2e-3)

for step in range(12):
    angle = torch.rand(64, device=device) * 6.2832
    x0 = torch.stack([angle.cos(), angle.sin()], dim=1)
    t = torch.randint(0, args.timesteps, (64,), device=device)
    noise = torch.randn(x0.shape, generator=gen, device=device)
    ab = alpha_bar[t].unsqueeze(1)
    xt = ab.sqrt() * x0 + (1 - ab).sqrt() * noise
    pred = denoiser(torch.cat([xt, t[:, None] / args.timesteps], dim=1))
    loss = (pred - noise).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
