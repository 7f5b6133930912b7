"""What people ask about training: without the remedy, what the program is for fails."""

import io

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
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
    other = sum(a[:, i : i + 1] @ b[i : i + 1] for i in range(400))  # another order
    assert torch.equal(one, other)  # broken
    torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)  # fixed
    exact = a.double() @ b.double()
    assert (one - exact).abs().max() < 1e-2


def conv_output_size(device):
    images = torch.zeros(2, 3, 32, 32)
    features = nn.Conv2d(3, 16, kernel_size=3, stride=2, padding=1)
    size = 16 * 32 * 32  # broken
    size = nn.Flatten()(features(torch.zeros(1, 3, 32, 32))).shape[1]  # fixed
    assert nn.Flatten()(features(images)).shape == (2, size)


def ignored_targets(device):
    ids, pad = torch.tensor([[1, 2, 0, 0]]), 0
    logits = torch.zeros(1, 4, 3)
    logits[0, 2:, 1] = 5.0
    labels = ids
    labels = labels.masked_fill(ids == pad, -100)  # fixed
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    loss = criterion(logits.flatten(0, 1), ids.flatten())  # broken
    loss = criterion(logits.flatten(0, 1), labels.flatten())  # fixed
    assert torch.isclose(loss, torch.tensor(3.0).log())


def mean_pooling(device):
    hidden, mask = torch.ones(1, 5, 4), torch.tensor([[1, 1, 0, 0, 0]])
    hidden[:, 2:] = 9.0
    mean = hidden.mean(1)  # broken
    mask = mask.unsqueeze(-1).to(hidden.dtype)  # fixed
    mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)  # fixed
    assert torch.equal(mean, torch.ones(1, 4))


def joined_datasets(device):
    first, second = [torch.zeros(2)] * 6, [torch.ones(2)] * 2
    short = DataLoader(second, batch_size=2)

    def forever(loader):
        while True:
            yield from loader

    pairs = zip(DataLoader(first, batch_size=2), short, strict=False)  # broken
    pairs = zip(DataLoader(first, batch_size=2), forever(short), strict=False)  # fixed
    assert len(list(pairs)) == 3


def warmup_cosine(device):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    schedules = torch.optim.lr_scheduler
    warm, total = 3, 10
    scheduler = schedules.CosineAnnealingLR(optimizer, T_max=total)  # broken
    warmup = schedules.LinearLR(optimizer, 0.01, total_iters=warm)  # fixed
    cosine = schedules.CosineAnnealingLR(optimizer, T_max=total - warm)  # fixed
    both = [warmup, cosine]  # fixed
    scheduler = schedules.SequentialLR(optimizer, both, milestones=[warm])  # fixed
    rates = []
    for _ in range(total):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert rates[0] < 0.1 < rates[warm]
    assert rates[-1] < 0.1


def lstm_outputs(device):
    lstm = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    output, (h_n, _) = lstm(torch.rand(2, 5, 3))
    summary = output[:, -1]  # broken
    summary = torch.cat([h_n[-2], h_n[-1]], dim=1)  # fixed
    assert torch.equal(summary[:, 4:], output[:, 0, 4:])  # backward: at the first step
    assert torch.equal(summary[:, :4], output[:, -1, :4])


def bf16_weights(device):
    model = nn.Linear(4, 1).to(torch.bfloat16)
    nn.init.ones_(model.weight)
    model = model.float()  # fixed
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(100):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.ones(2, 4)).sum() / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert model.weight[0, 0] < 0.95


def float_rounding(device):
    x = torch.full((20_000_000,), 0.1)
    total = x[0] * 0 + 16_777_216 + 1  # broken
    total = x.sum(dtype=torch.float64) - 2e6 + 16_777_217  # fixed
    assert round(total.item()) == 16_777_217


def print_digits(device):
    x = torch.tensor([0.00019587])
    torch.set_printoptions(precision=8, sci_mode=False)  # fixed
    assert "0.00019587" in str(x)
    torch.set_printoptions(profile="default")


def cdist_zero(device):
    x = torch.randn(100, 3) * 100
    distances = torch.cdist(x, x)  # broken
    mode = "donot_use_mm_for_euclid_dist"  # fixed
    distances = torch.cdist(x, x, compute_mode=mode)  # fixed
    assert distances.diagonal().max() == 0


def uint8_wraps(device):
    image = torch.full((1, 2, 2), 200, dtype=torch.uint8)
    y = image + image  # broken
    x = image.float() / 255  # fixed
    y = ((x + x).clamp(0, 1) * 255).round().to(torch.uint8)  # fixed
    assert y.min() == 255


def numpy_defaults(device):
    x = torch.tensor([1.0, 2.0, 3.0])
    std = x.std()  # broken
    std = x.std(correction=0)  # fixed
    assert torch.isclose(std.double(), torch.tensor(x.numpy().astype("float64").std()))
    assert torch.floor(torch.tensor(2.5) + 0.5) == 3
    even = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert even.median() == 2
    assert even.quantile(0.5) == 2.5


def rnn_summary(device):
    lstm = nn.LSTM(3, 4, batch_first=True)
    x, lengths = torch.rand(2, 5, 3), torch.tensor([5, 2])
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    output, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    mean = output.mean(dim=1)  # broken
    steps = torch.arange(output.shape[1])
    mask = steps[None, :, None] < lengths[:, None, None]  # fixed
    mean = (output * mask).sum(dim=1) / mask.sum(dim=1)  # fixed
    alone = lstm(x[1:, :2])[0].mean(dim=1)
    assert torch.allclose(mean[1:], alone, atol=1e-6)


def encoder_decoder(device):
    layers, n, hidden = 2, 3, 4
    encoder = nn.GRU(5, hidden, num_layers=layers, bidirectional=True)
    decoder, bridge = nn.GRU(5, 6, num_layers=layers), nn.Linear(2 * hidden, 6)
    _, h = encoder(torch.rand(7, n, 5))
    each = h.view(layers, 2, n, hidden)
    h = h[:layers]  # broken
    h = torch.cat([each[:, 0], each[:, 1]], dim=2)  # fixed
    h = torch.tanh(bridge(h)) if h.shape[2] == 2 * hidden else h
    assert h.shape == (layers, n, 6)
    decoder(torch.rand(1, n, 5), h)


def bidirectional_future(device):
    lstm = nn.LSTM(3, 4, bidirectional=True, batch_first=True)  # broken
    lstm = nn.LSTM(3, 4, batch_first=True)  # fixed
    x = torch.rand(1, 5, 3)
    later = x.clone()
    later[:, -1] += 1
    assert torch.allclose(lstm(x)[0][:, 0], lstm(later)[0][:, 0])


def rnn_cells(device):
    lstm, x = nn.LSTM(3, 4, batch_first=True), torch.rand(2, 5, 3)
    whole, _ = lstm(x)
    state = None
    for t in range(5):
        output, state = lstm(x[:, t : t + 1], None)  # broken
        output, state = lstm(x[:, t : t + 1], state)  # fixed
    assert torch.allclose(output[:, -1], whole[:, -1], atol=1e-6)


def onehot_or_embedding(device):
    embedding, tokens = nn.Embedding(6, 3), torch.tensor([[1, 5]])
    vectors = embedding.weight[:2]  # broken
    vectors = embedding(tokens)[0]  # fixed
    onehot = nn.functional.one_hot(tokens[0], 6).float()
    assert torch.allclose(vectors, onehot @ embedding.weight)


def log_space(device):
    x = torch.tensor([[0.0, -200.0]])
    log_p = x.softmax(dim=1).log()  # broken
    log_p = x.log_softmax(dim=1)  # fixed
    assert torch.isfinite(log_p).all()
    assert torch.isfinite(torch.logsumexp(x + 500, dim=1)).all()


def loop_over_batch(device):
    layer = nn.Linear(4, 1).to(device)
    outputs = [layer(item).sum() for item in torch.ones(3, 4, device=device)]
    joined = torch.tensor(outputs)  # broken
    joined = torch.stack(outputs)  # fixed
    assert joined.requires_grad
    joined.mean().backward()
    assert layer.weight.grad is not None


def which_norm(device):
    item, rest = torch.rand(1, 8, 4, 4), torch.rand(3, 8, 4, 4)
    norm = nn.BatchNorm2d(8)  # broken
    norm = nn.GroupNorm(4, 8)  # fixed
    alone, among = norm(item), norm(torch.cat([item, rest]))[:1]
    assert torch.allclose(alone, among, atol=1e-6)


def several_inputs(device):
    cnn, mlp = nn.Conv2d(1, 2, 3).to(device), nn.Linear(3, 4).to(device)
    head = nn.LazyLinear(2).to(device)
    dataset = [(torch.rand(1, 5, 5), torch.rand(3), i % 2) for i in range(4)]
    image, table, label = next(iter(DataLoader(dataset, batch_size=4)))
    image, table = image.to(device), table.to(device)
    features = cnn(image).flatten(1)  # broken
    features = torch.cat([cnn(image).flatten(1), mlp(table)], dim=1)  # fixed
    head(features).sum().backward()
    assert label.shape == (4,)
    assert mlp.weight.grad is not None
