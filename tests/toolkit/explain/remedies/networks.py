"""What people ask most often in forums about networks, their parts, and gradients."""

import io

import torch
from torch import nn
from torch.nn import functional as F


def through_frozen(device):
    first, second = nn.Linear(3, 3), nn.Linear(3, 1)
    hidden = first(torch.ones(2, 3)).detach()  # broken
    hidden = first(torch.ones(2, 3))  # fixed
    second.requires_grad_(False)  # fixed
    second(hidden).sum().backward()
    assert first.weight.grad is not None
    assert second.weight.grad is None
    second.requires_grad_(True)
    loss = second(first(torch.ones(2, 3))).sum()
    loss.backward(inputs=list(first.parameters()))
    assert second.weight.grad is None


def replace_head(device):
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1000))
    classes = 5
    model[-1].out_features = classes  # broken
    model[-1] = nn.Linear(model[-1].in_features, classes)  # fixed
    assert model(torch.zeros(2, 3, 2, 2)).shape == (2, classes)
    model[-1] = nn.Identity()
    assert model(torch.zeros(2, 3, 2, 2)).shape == (2, 8)


def partial_freeze(device):
    embedding = nn.Embedding(4, 2)
    before = embedding.weight.detach().clone()
    mask = torch.ones(4, 1)  # broken
    mask = torch.zeros(4, 1)  # fixed
    mask[3] = 1
    embedding.weight.register_hook(lambda gradient: gradient * mask)
    optimizer = torch.optim.Adam(embedding.parameters(), lr=0.1)
    embedding(torch.arange(4)).sum().backward()
    optimizer.step()
    same = (embedding.weight == before).all(dim=1)
    assert same.tolist() == [True, True, True, False]


def input_gradient(device):
    torch.manual_seed(0)
    model = nn.Linear(4, 2).eval()
    image, labels = torch.rand(1, 4), torch.tensor([0])
    x = image.requires_grad_() / 1  # broken
    x = (image / 1).detach().requires_grad_()  # fixed
    assert x.is_leaf
    loss = F.cross_entropy(model(x), labels)
    loss.backward()
    attacked = x + 0.03 * x.grad.sign()
    assert F.cross_entropy(model(attacked), labels) > loss


def gradient_reversal(device):
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            return x.view_as(x)

        @staticmethod
        def backward(ctx, gradient):
            return -ctx.factor * gradient, None

    x = torch.ones(3, requires_grad=True)
    y = -1.0 * x  # broken
    y = Reverse.apply(x, 1.0)  # fixed
    assert torch.equal(y, x)
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1, -1]


def manual_step(device):
    w = torch.tensor([1.0], requires_grad=True)
    for _ in range(2):
        (w**2).sum().backward()
        assert w.grad is not None
        w = w - 0.1 * w.grad  # broken
        with torch.no_grad():  # fixed
            w -= 0.1 * w.grad  # fixed
            w.grad = None  # fixed
        assert w.is_leaf
    assert torch.isclose(w, torch.tensor(0.64)).all()


def negative_images(device):
    boxes = []
    found = torch.as_tensor(boxes, dtype=torch.float32)  # broken
    found = torch.as_tensor(boxes, dtype=torch.float32).reshape(-1, 4)  # fixed
    assert found.shape == (0, 4)


def detection_nan(device):
    boxes = torch.tensor([[0.0, 0.0, 5.0, 5.0], [3.0, 3.0, 3.0, 8.0]])
    keep = (boxes[:, 2:] >= boxes[:, :2]).all(dim=1)  # broken
    keep = ((boxes[:, 2:] - boxes[:, :2]) >= 1).all(dim=1)  # fixed
    sizes = boxes[keep][:, 2:] - boxes[keep][:, :2]
    assert torch.isfinite(torch.log(sizes)).all()


def keras_weights(device):
    kernel = torch.arange(24.0).reshape(2, 2, 2, 3)  # height, width, inputs, outputs
    conv = nn.Conv2d(2, 3, 2, bias=False)
    weight = kernel.reshape(3, 2, 2, 2)  # broken
    weight = kernel.permute(3, 2, 0, 1)  # fixed
    with torch.no_grad():
        conv.weight.copy_(weight)
    image = torch.randn(1, 2, 2, 2)
    expected = torch.einsum("ihw,hwio->o", image[0], kernel)
    assert torch.allclose(conv(image).flatten(), expected, atol=1e-4)


def toy_function(device):
    torch.manual_seed(0)
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = torch.tensor([[0.0], [1.0], [1.0], [0.0]])
    model = nn.Sequential(nn.Linear(2, 16), nn.Linear(16, 1))  # broken
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))  # fixed
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(600):
        loss = nn.BCEWithLogitsLoss()(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal((model(x) > 0).float(), y)


def norm_bias(device):
    torch.manual_seed(0)
    conv, norm = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
    images = torch.randn(4, 1, 8, 8)
    before = norm(conv(images))
    with torch.no_grad():
        conv.weight += 5  # broken
        conv.bias += 5  # fixed
    assert torch.allclose(norm(conv(images)), before, atol=1e-4)


def functional_or_module(device):
    class Net(nn.Module):
        def forward(self, x):
            x = F.dropout(x, 0.5)  # broken
            x = F.dropout(x, 0.5, training=self.training)  # fixed
            return x

    ones = torch.ones(1000)
    if not torch.equal(Net().train()(ones), ones):
        assert torch.equal(Net().eval()(ones), ones)


def skip_connections(device):
    class Block(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.body = nn.Conv2d(inputs, outputs, 3, padding=1)
            self.skip = nn.Identity()  # broken
            if inputs != outputs:  # fixed
                self.skip = nn.Conv2d(inputs, outputs, 1)  # fixed

    block, x = Block(2, 8), torch.zeros(1, 2, 4, 4)
    assert block.body(x).shape == block.skip(x).shape


def parameter_names(device):
    norm = nn.BatchNorm1d(3)
    names = {name for name, _ in norm.named_parameters()}  # broken
    names = set(norm.state_dict())  # fixed
    assert "running_mean" in names


def old_variable(device):
    x = torch.ones(2, requires_grad=True)
    y = x * 2  # broken
    with torch.no_grad():  # fixed
        y = x * 2  # fixed
    assert not y.requires_grad


def audio_lengths(device):
    size, waveform = 16, torch.ones(10)
    padded = waveform[:size]  # broken
    padded = F.pad(waveform, (0, max(0, size - len(waveform))))[:size]  # fixed
    assert len(padded) == size
    window = torch.hann_window(8)
    spectrum = torch.stft(padded, 8, hop_length=4, window=window, return_complex=True)
    assert spectrum.shape[-1] == size // 4 + 1  # frames


def decay_groups(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    groups = [{"params": list(model.parameters()), "weight_decay": 0.1}]  # broken
    decayed = [p for p in model.parameters() if p.ndim >= 2]  # fixed
    others = [p for p in model.parameters() if p.ndim < 2]  # fixed
    groups = [{"params": decayed, "weight_decay": 0.1}]  # fixed
    groups += [{"params": others, "weight_decay": 0.0}]  # fixed
    optimizer = torch.optim.AdamW(groups, lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert torch.equal(model[1].weight, torch.ones(2))


def default_dtype(device):
    total = torch.full((1,), 1e8).add(1)  # broken
    total = torch.full((1,), 1e8, dtype=torch.float64).add(1)  # fixed
    assert total.item() == 1e8 + 1


def complex_numbers(device):
    layer = nn.Linear(3, 1, dtype=torch.complex64)
    z = layer(torch.randn(2, 3, dtype=torch.complex64))
    loss = z.mean()  # broken
    loss = z.abs().square().mean()  # fixed
    assert not loss.is_complex()
    loss.backward()
    assert layer.weight.grad.is_complex()
    assert torch.view_as_real(z).movedim(-1, 1).shape == (2, 2, 1)


def unfreezing(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    trained = [p for p in model.parameters() if p.requires_grad]  # broken
    trained = model.parameters()  # fixed
    optimizer = torch.optim.SGD(trained, lr=0.1)
    model[0].requires_grad_(True)
    before = model[0].bias.detach().clone()
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(model[0].bias, before)


def new_rate(device):
    model = nn.Linear(2, 1)
    saved = torch.optim.Adam(model.parameters(), lr=0.1).state_dict()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
    optimizer.load_state_dict(saved)
    for group in optimizer.param_groups:
        group["lr"] = group["lr"]  # broken
        group["lr"] = group["initial_lr"] = 1e-5  # fixed
    assert optimizer.param_groups[0]["lr"] == 1e-5
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
    assert schedule.base_lrs == [1e-5]


def custom_layer(device):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.ones(2, requires_grad=True)  # broken
            self.weight = nn.Parameter(torch.ones(2))  # fixed
            self.register_buffer("mean", torch.zeros(2))

    assert [name for name, _ in Scale().named_parameters()] == ["weight"]
    assert set(Scale().state_dict()) == {"weight", "mean"}


def attention_maps(device):
    attention = nn.MultiheadAttention(8, 2, batch_first=True)
    x, options = torch.randn(1, 5, 8), {}  # broken
    x, options = torch.randn(1, 5, 8), {"average_attn_weights": False}  # fixed
    _, weights = attention(x, x, x, need_weights=True, **options)
    assert weights.shape == (1, 2, 5, 5)

    def ask(module, inputs, given):
        return inputs, given | {"need_weights": True, "average_attn_weights": False}

    layer, kept = nn.TransformerEncoderLayer(8, 2, batch_first=True), []
    layer.self_attn.register_forward_pre_hook(ask, with_kwargs=True)
    layer.self_attn.register_forward_hook(lambda *told: kept.append(told[2][1]))
    encoder = nn.TransformerEncoder(layer, 2)
    encoder(x)
    assert kept[0].shape == (1, 2, 5, 5)


def upsampling(device):
    x = torch.zeros(1, 4, 7, 7)
    up = nn.ConvTranspose2d(4, 2, kernel_size=3, stride=2)  # broken
    up = nn.ConvTranspose2d(4, 2, kernel_size=2, stride=2)  # fixed
    assert up(x).shape == (1, 2, 14, 14)


def inplace_option(device):
    x = torch.tensor([-1.0, 2.0])
    y = F.relu(x, inplace=True)  # broken
    y = F.relu(x)  # fixed
    assert (x + y).tolist() == [-1.0, 4.0]


def gradient_statistics(device):
    model = nn.Linear(3, 2)
    model(torch.ones(1, 3)).sum().backward()
    norms = [p.norm() for p in model.parameters()]  # broken
    norms = [p.grad.norm() for p in model.parameters()]  # fixed
    total = nn.utils.get_total_norm(p.grad for p in model.parameters())
    assert torch.isclose(torch.stack(norms).norm(), total)


def accuracy_flat(device):
    logits, labels = torch.tensor([0.3, -0.2, 2.0, -3.0]), torch.tensor([1, 0, 1, 0])
    predicted = (logits > 0.5).long()  # broken
    predicted = (logits > 0).long()  # fixed
    assert (predicted == labels).float().mean() == 1


def group_values(device):
    x, group = torch.ones(4, 2), torch.tensor([0, 0, 0, 1])
    sums = torch.zeros(2, 2)
    sums[group] += x  # broken
    sums.index_add_(0, group, x)  # fixed
    assert sums[:, 0].tolist() == [3, 1]
    means = sums / torch.bincount(group, minlength=2).clamp_min(1).unsqueeze(1)
    assert torch.equal(means, torch.ones(2, 2))


def compare_tensors(device):
    a = torch.tensor(0.1) + torch.tensor(0.7)
    same = torch.equal(a, a + 1e-7)  # broken
    same = torch.allclose(a, a + 1e-7, rtol=1e-4, atol=1e-6)  # fixed
    assert same
    x, scores = torch.arange(6).reshape(2, 3), torch.tensor([[3, 1, 2], [1, 2, 3]])
    assert x.gather(1, scores.argsort(dim=1)).tolist() == [[1, 2, 0], [3, 4, 5]]


def clone_or_detach(device):
    x = torch.ones(3)
    y = x.detach()  # broken
    y = x.detach().clone()  # fixed
    y[0] = 5
    assert x.tolist() == [1, 1, 1]


def reparameterized(device):
    mean = torch.zeros(2, requires_grad=True)
    distribution = torch.distributions.Normal(mean, 1.0)
    x = distribution.sample()  # broken
    x = distribution.rsample()  # fixed
    assert x.requires_grad
    x.sum().backward()
    assert mean.grad.tolist() == [1, 1]


def text_input(device):
    texts = ["the red fox", "a fox"]
    numbers = {"the": 2, "red": 3, "fox": 4}
    unknown = 0  # broken
    unknown = 1  # fixed
    words = [[numbers.get(word, unknown) for word in text.split()] for text in texts]
    rows = [torch.tensor(row) for row in words]
    batch = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    assert batch.tolist() == [[2, 3, 4], [1, 4, 0]]  # 1: unknown, 0: padding


def without_class(device):
    class Net(nn.Module):
        def forward(self, x):
            return 2 * x

    net, buffer = Net(), io.BytesIO()
    file = net.state_dict()  # broken
    program = torch.export.export(net, (torch.ones(2),))  # fixed
    torch.export.save(program, buffer)  # fixed
    file = buffer.getvalue()  # fixed
    assert isinstance(file, bytes)
    buffer.seek(0)
    model = torch.export.load(buffer).module()
    assert model(torch.ones(2)).tolist() == [2, 2]
