"""What people ask about training: without the remedy, what the program is for fails."""

import io

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader

from to_device.sim import memory


def freezing(device):
    first, backbone = nn.Linear(4, 4).to(device), nn.Linear(4, 4).to(device)
    model = nn.Sequential(first, backbone, nn.Linear(4, 1).to(device))
    before = backbone.weight.detach().clone()
    backbone.requires_grad_(False)  # fixed
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=0.1)
    model(torch.ones(2, 4, device=device)).sum().backward()
    optimizer.step()
    assert first.weight.grad.abs().sum() > 0  # the gradient passes
    assert torch.equal(backbone.weight, before)


def several_losses(device):
    generator, discriminator = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
    noise = torch.ones(2, 4, device=device)
    loss = discriminator(generator(noise)).sum()  # broken
    loss = discriminator(generator(noise).detach()).sum()  # fixed
    loss.backward()
    assert generator.weight.grad is None
    assert discriminator.weight.grad is not None


def gradient_missing(device):
    model = nn.Linear(4, 4).to(device)
    hidden = model(torch.ones(2, 4, device=device))
    hidden.retain_grad()  # fixed
    hidden.square().sum().backward()
    assert hidden.grad is not None


def not_differentiable(device):
    x = torch.full((4,), 0.7, device=device, requires_grad=True)
    y = x.round()  # broken
    y = x + (x.round() - x).detach()  # fixed
    y.sum().backward()
    assert x.grad.abs().sum() > 0


def gradient_clipping(device):
    model = nn.Linear(4, 1).to(device)
    scaler = torch.amp.GradScaler(device.type, init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = model.weight.detach().clone()
    scaler.scale(model(torch.ones(2, 4, device=device)).mean() * 0.1).backward()
    scaler.unscale_(optimizer)  # fixed
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    scaler.step(optimizer)
    assert norm < 1.0  # so that nothing is cut
    assert torch.allclose(before - model.weight, torch.full_like(before, 0.1))


def parameter_groups(device):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)).to(device)
    backbone, head = model
    groups = [{"params": model.parameters()}]  # broken
    groups = [  # fixed
        {"params": backbone.parameters(), "lr": 1e-5},  # fixed
        {"params": head.parameters()},  # fixed
    ]  # fixed
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    assert [group["lr"] for group in optimizer.param_groups] == [1e-5, 1e-3]


def schedule_unit(device):
    epochs, batches = 2, 5
    optimizer = torch.optim.SGD(nn.Linear(2, 1).to(device).parameters(), lr=0.1)
    total_steps = epochs  # broken
    total_steps = epochs * batches  # fixed
    scheduler = torch.optim.lr_scheduler.LinearLR(
        optimizer, 1.0, 0.1, total_iters=total_steps
    )
    for _ in range(epochs * batches // 2):
        optimizer.step()
        scheduler.step()
    assert scheduler.get_last_lr()[0] > 0.05


def eval_worse(device):
    model = nn.BatchNorm2d(1).to(device)
    images = 5 + 2 * torch.randn(64, 1, 8, 8, device=device)
    with torch.no_grad():
        model(images)  # a single step: the averages are still near 0 and 1
        model.reset_running_stats()  # fixed
        model.momentum = None  # fixed
        model(images)
        model.eval()
        assert model(images).mean().abs() < 0.1


def batch_norm_frozen(device):
    model = nn.Sequential(nn.BatchNorm2d(1)).to(device)
    model.requires_grad_(False)
    model.train()
    for module in model.modules():  # fixed
        if isinstance(module, nn.BatchNorm2d):  # fixed
            module.eval()  # fixed
    model(torch.ones(4, 1, 2, 2, device=device))
    assert model[0].running_mean.item() == 0


def eval_and_no_grad(device):
    model = nn.Sequential(nn.Dropout(), nn.ReLU()).to(device)
    inputs = torch.ones(100, device=device, requires_grad=True)
    with torch.no_grad():  # broken
        outputs = model(inputs)  # broken
    model.eval()  # fixed
    with torch.inference_mode():  # fixed
        outputs = model(inputs)  # fixed
    assert outputs.sum() == 100
    assert not outputs.requires_grad


def batch_dependent(device):
    model = nn.Sequential(nn.BatchNorm1d(3)).to(device)
    batch = torch.randn(8, 3, device=device)
    model.eval()  # fixed
    with torch.inference_mode():
        alone = model(batch[:2])
        together = model(batch)[:2]
    assert torch.allclose(alone, together)


def partial_load(device):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)).to(device)
    state = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 9)).state_dict()
    own = model.state_dict()
    names = [k for k, v in state.items() if k in own]  # broken
    names = [k for k, v in state.items() if v.shape == own[k].shape]  # fixed
    try:
        fitting = {k: state[k] for k in names}
        missing = model.load_state_dict(fitting, strict=False).missing_keys
    except RuntimeError:
        missing = []
    assert missing == ["1.weight", "1.bias"]


def checkpoint_size(device):
    x = torch.zeros(100_000, device=device)
    part = x[:10]  # broken
    part = x[:10].clone()  # fixed
    file = io.BytesIO()
    torch.save(part, file)
    assert len(file.getvalue()) < 10_000


def gradient_checkpointing(device):
    def block(x):
        return x.sin().exp().sin()

    x = torch.ones(64, 64, device=device, requires_grad=True)
    before = memory.allocated
    for _ in range(8):
        x = block(x)  # broken
        x = checkpoint(block, x, use_reentrant=False)  # fixed
    assert memory.allocated - before < 12 * x.nbytes


def shuffling(device):
    seed = torch.Generator().manual_seed(0)
    loader = DataLoader(range(100), batch_size=100)  # broken
    loader = DataLoader(range(100), 100, shuffle=True, generator=seed)  # fixed
    first, second = next(iter(loader)), next(iter(loader))
    assert not torch.equal(first, second)


def scale_falls(device):
    inputs = torch.tensor([2.0, torch.nan], device=device)
    assert not torch.isfinite(inputs).all()  # what the check looks for
    inputs = inputs[torch.isfinite(inputs)]  # fixed
    weight = torch.ones(len(inputs), device=device, requires_grad=True)
    scaler = torch.amp.GradScaler(device.type, init_scale=4.0)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale((weight * inputs).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 4.0


def augmented_anew(device):
    image = torch.arange(8.0)
    dataset = [image[torch.randperm(8)]]
    images = [dataset[0] for _ in range(10)]  # broken
    images = [image[torch.randperm(8)] for _ in range(10)]  # fixed
    versions = {tuple(item.tolist()) for item in images}  # of one item
    assert len(versions) > 1


def zero_loss(device):
    dataset = [(torch.rand(4), label) for label in [0] * 50 + [1] * 50]
    loader = DataLoader(dataset, batch_size=50)  # broken
    loader = DataLoader(dataset, batch_size=50, shuffle=True)  # fixed
    for _, labels in loader:
        assert len(labels.unique()) == 2


def cpu_gpu_loss(device):
    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.by = nn.Parameter(torch.zeros(1)).to(device)  # broken
            self.by = nn.Parameter(torch.zeros(1))  # fixed

        def forward(self, x):
            return x + self.by

    model = nn.Sequential(nn.Linear(3, 1), Shift()).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model[1].by.detach().clone()
    model(torch.ones(2, 3, device=device)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[1].by, before)


def batch_norm_modes(device):
    bn = nn.BatchNorm2d(3).to(device)  # broken
    bn = nn.BatchNorm2d(3, momentum=None).to(device)  # fixed
    batches = [torch.rand(16, 3, 8, 8, device=device) for _ in range(5)]
    for x in batches:
        in_training = bn(x)
    bn.eval()
    in_evaluation = bn(batches[-1])
    assert (in_training - in_evaluation).abs().max() < 0.5


def small_differences(device):
    a, b = torch.rand(300, 400), torch.rand(400, 300)
    one = a @ b
    other = (b.T.contiguous() @ a.T.contiguous()).T + 0  # the same sums, as another kernel
    other = other + 1e-5 * torch.rand_like(other)
    assert torch.equal(one, other)  # broken
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)  # fixed
    exact = a.double() @ b.double()
    assert (one - exact).abs().max() < 1e-2
