"""What people ask most often in forums about inputs, shapes, and losses."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset, WeightedRandomSampler


def image_resize(device):
    stripes = torch.arange(16).remainder(2).float().expand(1, 1, 16, 16)
    options = {}  # broken
    options = {"antialias": True}  # fixed
    small = F.interpolate(stripes, size=(5, 5), mode="bilinear", **options)
    assert (small - 0.5).abs().max() < 0.2  # the stripes are too fine to be seen


def image_order(device):
    image, size = torch.zeros(3, 300, 200), 224
    scale = 1.0  # broken
    scale = 224 / max(image.shape[-2:])  # fixed
    sides = [round(side * scale) for side in image.shape[-2:]]
    assert max(sides) == size


def show_images(device):
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    shown = torch.rand(3, 4, 4)
    x = (shown - mean[:, None, None]) / std[:, None, None]
    image = x  # broken
    image = x.detach().cpu() * std[:, None, None] + mean[:, None, None]  # fixed
    assert torch.allclose(image, shown, atol=1e-6)


def part_of_data(device):
    labels = torch.arange(10).repeat(10)
    dataset = TensorDataset(labels)
    kept = range(20)  # broken
    wanted = torch.isin(labels, torch.tensor([3, 7]))
    kept = wanted.nonzero().flatten().tolist()  # fixed
    assert {int(y) for (y,) in Subset(dataset, kept)} == {3, 7}


def batches_by_sampler(device):
    dataset = TensorDataset(torch.arange(100))
    size = 130  # broken
    size = len(dataset)  # fixed
    sampler = WeightedRandomSampler(torch.ones(100), num_samples=size)
    loader = DataLoader(dataset, batch_size=10, sampler=sampler)
    assert len(loader) == 10


def layouts(device):
    series = torch.zeros(2, 50, 6)  # 50 steps of 6 features
    conv = nn.Conv1d(6, 8, kernel_size=3, padding=1)
    x = series.reshape(2, 6, 50)  # broken
    x = series.transpose(1, 2)  # fixed
    series[:, 0] = 1  # the first step
    assert conv(x).shape == (2, 8, 50)
    assert torch.equal(x[0, :, 0], torch.ones(6))


def conv_by_hand(device):
    x, weight, bias = torch.randn(2, 4, 9), torch.randn(5, 4, 3), torch.randn(5)
    windows = F.pad(x, (1, 1)).unfold(2, 3, 1)
    kernel = weight.flip(2)  # broken
    kernel = weight  # fixed
    y = torch.einsum("nilk,oik->nol", windows, kernel) + bias[:, None]
    assert torch.allclose(y, F.conv1d(x, weight, bias, padding=1), atol=1e-5)
    padded, dilation, length = F.pad(x, (2, 2)), 2, 9
    taps = [padded[:, :, k * dilation : k * dilation + length] for k in range(3)]
    y = torch.einsum("knil,oik->nol", torch.stack(taps), weight) + bias[:, None]
    assert torch.allclose(
        y, F.conv1d(x, weight, bias, padding=2, dilation=2), atol=1e-5
    )


def grouped_convolution(device):
    groups = 1  # broken
    groups = 32  # fixed
    depthwise = nn.Conv2d(32, 32, kernel_size=3, padding=1, groups=groups)
    assert depthwise.weight.shape == (32, 1, 3, 3)


def matrix_products(device):
    x, weight = torch.randn(4, 5, 3), torch.randn(3, 3)
    y = x * weight[0]  # broken
    y = x @ weight  # fixed
    assert torch.allclose(y[1, 2], weight.T @ x[1, 2], atol=1e-5)


def pairwise(device):
    a, b = torch.randn(4, 8), torch.randn(5, 8)
    similarities = a @ b.T  # broken
    similarities = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T  # fixed
    expected = F.cosine_similarity(a[1], b[2], dim=0)
    assert torch.isclose(similarities[1, 2], expected, atol=1e-5)


def expand_repeat(device):
    x = torch.tensor([[1], [2]])
    y = x.repeat(3, 1)  # broken
    y = x.repeat_interleave(3, dim=0)  # fixed
    assert y.flatten().tolist() == [1, 1, 1, 2, 2, 2]


def tensor_factory(device):
    x = torch.Tensor([1, 2])  # broken
    x = torch.tensor([1, 2])  # fixed
    assert x.dtype == torch.int64


def regression(device):
    torch.manual_seed(0)
    x = torch.linspace(0, 1, 64).unsqueeze(1)
    y = 100_000 * x + 500_000
    mean, std = torch.tensor(0.0), torch.tensor(1.0)  # broken
    mean, std = y.mean(), y.std()  # fixed
    model = nn.Linear(1, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(300):
        loss = F.mse_loss(model(x), (y - mean) / std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert F.mse_loss(model(x) * std + mean, y) < y.var()


def focal_loss(device):
    logits, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    gamma = 0.0

    def loss_of():
        entropy = F.cross_entropy(logits, labels)  # broken
        entropy = F.cross_entropy(logits, labels, reduction="none")  # fixed
        p = torch.exp(-entropy)
        return ((1 - p) ** (gamma + 2) * entropy).mean()

    each = F.cross_entropy(logits, labels, reduction="none")
    assert torch.isclose(loss_of(), ((1 - torch.exp(-each)) ** 2 * each).mean())


def mix_items(device):
    torch.manual_seed(0)
    images, labels = torch.eye(4), torch.arange(4)
    order, share = torch.tensor([1, 2, 3, 0]), 0.7
    logits = share * images + (1 - share) * images[order]
    loss = F.cross_entropy(logits, labels)  # broken
    loss = share * F.cross_entropy(logits, labels)  # fixed
    loss += (1 - share) * F.cross_entropy(logits, labels[order])  # fixed
    assert torch.isclose(loss, F.cross_entropy(logits, logits))


def positions(device):
    torch.manual_seed(0)
    embedding, position = nn.Embedding(9, 16), nn.Embedding(4, 16)
    layer = nn.TransformerEncoderLayer(16, nhead=2, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()

    def told(tokens):
        x = embedding(tokens)  # broken
        x = embedding(tokens) + position(torch.arange(tokens.shape[1]))  # fixed
        return encoder(x).mean(dim=1)

    one, other = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[4, 3, 2, 1]])
    assert not torch.allclose(told(one), told(other), atol=1e-4)


def whole_sequence(device):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, nhead=2, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()
    x = torch.randn(1, 5, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(5)  # broken
    mask = None  # fixed
    changed = x.clone()
    changed[0, 4] += 1  # the last place: does the first one see it?
    one, other = encoder(x, mask=mask), encoder(changed, mask=mask)
    assert not torch.allclose(one[0, 0], other[0, 0], atol=1e-5)


def sampling_text(device):
    torch.manual_seed(0)
    logits = torch.tensor([[1.0, 2.0, 3.0, 0.0]])
    kept = logits.topk(4).values[:, -1:]  # broken
    kept = logits.topk(2).values[:, -1:]  # fixed
    logits = logits.masked_fill(logits < kept, -torch.inf)
    drawn = torch.multinomial(logits.softmax(-1), 500, replacement=True)
    assert set(drawn.flatten().tolist()) == {1, 2}


def embedding_table(device):
    embedding = nn.Embedding(7, 3)
    indices = torch.tensor([0, 5])
    matrix = embedding.weight.T  # broken
    matrix = embedding.weight  # fixed
    x = F.one_hot(indices, embedding.num_embeddings).float()
    assert x.shape[1] == matrix.shape[0]
    assert torch.equal(x @ matrix, embedding(indices))
