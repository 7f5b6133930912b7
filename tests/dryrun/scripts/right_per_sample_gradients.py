import torch
from torch import nn
from torch.func import functional_call, grad, vmap

device = torch.device("cuda")
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
params = {k: v.detach() for k, v in model.named_parameters()}


def loss_of(params, x, y):
    out = functional_call(model, params, (x.unsqueeze(0),))
    return nn.functional.cross_entropy(out, y.unsqueeze(0))


x, y = torch.rand(6, 4, device=device), torch.randint(2, (6,), device=device)
per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))(params, x, y)
print({k: tuple(v.shape) for k, v in per_sample.items()})
