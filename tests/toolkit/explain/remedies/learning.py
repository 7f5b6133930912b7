"""What people ask about learning itself: losses, masks, samplers, and weights."""

import copy
import itertools

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Subset, WeightedRandomSampler, random_split


def gan_detach(device):
    generator, discriminator = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
    fake = generator(torch.ones(2, 4, device=device))
    loss_d = discriminator(fake).mean()  # broken
    loss_d = discriminator(fake.detach()).mean()  # fixed
    loss_d.backward()
    assert generator.weight.grad is None
    discriminator(fake).mean().backward()  # the generator's graph is still there


def class_weights(device):
    labels = torch.tensor([0] * 9 + [1])
    logits = torch.zeros(10, 2)
    weight = torch.ones(2)  # broken
    counts = torch.bincount(labels, minlength=2).float()  # fixed
    weight = counts.sum() / (2 * counts)  # fixed
    single = nn.CrossEntropyLoss(weight=weight, reduction="none")(logits, labels)
    assert torch.isclose(single[:9].sum(), single[9:].sum())


def weighted_sampler(device):
    labels = torch.tensor([0] * 900 + [1] * 100)
    counts = torch.bincount(labels).float()
    weights = 1 / counts  # broken
    weights = (1 / counts)[labels]  # fixed
    sampler = WeightedRandomSampler(weights, num_samples=1000, replacement=True)
    drawn = labels[torch.tensor(list(sampler))]
    assert 400 < drawn.sum() < 600


def multi_label(device):
    targets = torch.zeros(100, 50)
    targets[torch.arange(100), torch.arange(100) % 50] = 1
    predicted = torch.zeros(100, 50) > 0.5
    score = (predicted == (targets > 0)).float().mean()  # broken
    both = 2 * (predicted & (targets > 0)).sum()  # fixed
    score = both / (predicted.sum() + targets.sum())  # fixed
    assert score < 0.5  # nothing is found


def layer_outputs(device):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).to(device)
    kept = {}

    def keep(module, inputs, output):
        kept["first"] = output.detach()

    handle = model[0].register_forward_hook(keep)
    x = torch.ones(5, 4, device=device)
    model[0].forward(x)  # broken
    model(x)  # fixed
    handle.remove()  # fixed
    assert kept.get("first", x).shape == (5, 3)


def causal_mask(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    x = torch.randn(1, 5, 8)
    other = x.clone()
    other[:, -1] += 1
    options = {}  # broken
    mask = nn.Transformer.generate_square_subsequent_mask(5)  # fixed
    options = {"mask": mask, "is_causal": True}  # fixed
    before, after = encoder(x, **options), encoder(other, **options)
    assert torch.allclose(before[:, :-1], after[:, :-1], atol=1e-6)


def padding_mask(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    x = torch.randn(1, 3, 8)
    padded = torch.cat([x, torch.zeros(1, 2, 8)], dim=1)
    attention_mask = torch.tensor([[1, 1, 1, 0, 0]])
    padding = attention_mask == 1  # broken
    padding = attention_mask == 0  # fixed
    output = encoder(padded, src_key_padding_mask=padding)
    assert torch.allclose(output[:, :3], encoder(x), atol=1e-6)


def padded_rnn(device):
    lstm = nn.LSTM(3, 4, batch_first=True)
    x = torch.randn(1, 2, 3)
    padded = torch.cat([x, torch.zeros(1, 4, 3)], dim=1)
    packed = padded  # broken
    lengths = torch.tensor([2])
    packed = pack_padded_sequence(  # fixed
        padded,  # fixed
        lengths.cpu(),  # fixed
        batch_first=True,  # fixed
        enforce_sorted=False,  # fixed
    )  # fixed
    _, (h, _) = lstm(packed)
    assert torch.allclose(h[-1], lstm(x)[1][0][-1], atol=1e-6)


def joint_transforms(device):
    image = torch.arange(64.0).reshape(1, 8, 8)
    mask = image.clone()

    def crop(*tensors):
        at = int(torch.randint(0, 5, ()))
        return [tensor[:, at : at + 4] for tensor in tensors]

    for _ in range(10):
        (one,), (two,) = crop(image), crop(mask)  # broken
        one, two = crop(image, mask)  # fixed
        assert torch.equal(one, two)


def mask_values(device):
    mask = torch.tensor([[[0, 1], [255, 1]]])
    logits = torch.zeros(1, 2, 2, 2)
    options = {}  # broken
    options = {"ignore_index": 255}  # fixed
    try:
        loss = nn.CrossEntropyLoss(**options)(logits, mask).item()
    except IndexError:
        loss = 0.0
    valid = mask != 255
    target = F.one_hot(mask.where(valid, 0), 2)
    assert target.shape == (1, 2, 2, 2)
    assert abs(loss - np.log(2)) < 1e-5


def vae_kl(device):
    x, output = torch.rand(4, 3, 8, 8), torch.rand(4, 3, 8, 8)
    mu, logvar = torch.ones(4, 16), torch.zeros(4, 16)
    kl = (-0.5 * (1 + logvar - mu.square() - logvar.exp())).sum(dim=1).mean()
    reconstruction = F.mse_loss(output, x)  # broken
    reconstruction = F.mse_loss(output, x, reduction="sum") / len(x)  # fixed
    assert reconstruction > kl


def graph_cut(device):
    model = nn.Linear(4, 1).to(device)
    outputs = [model(torch.ones(2, 4, device=device)) for _ in range(3)]
    parts = [output.square().mean() for output in outputs]
    loss = torch.tensor([p.item() for p in parts], requires_grad=True).sum()  # broken
    loss = torch.stack(parts).mean()  # fixed
    loss.backward()
    assert model.weight.grad is not None


def random_inference(device):
    model = nn.Sequential(nn.Dropout(), nn.Linear(8, 2)).to(device)
    x = torch.ones(4, 8, device=device)
    model.eval()  # fixed
    with torch.inference_mode():
        assert torch.equal(model(x), model(x))


def cross_validation(device):
    x = torch.randn(40, 30)
    y = (torch.rand(40) > 0.5).float()  # nothing to learn but by heart
    model = nn.Linear(30, 1)
    first = []
    for fold in range(4):
        val = torch.arange(40) % 4 == fold
        model = nn.Linear(30, 1)  # fixed
        first.append(F.binary_cross_entropy_with_logits(model(x[val])[:, 0], y[val]))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(200):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(model(x[~val])[:, 0], y[~val])
            loss.backward()
            optimizer.step()
    assert torch.stack(first[1:]).min() > 0.4  # unseen: that of guessing


def split_transforms(device):
    class Numbers(torch.utils.data.Dataset):
        def __init__(self, transform=None):
            self.transform = transform

        def __len__(self):
            return 10

        def __getitem__(self, i):
            return self.transform(i) if self.transform else i

    plain = Numbers()
    train_set, val_set = random_split(plain, [8, 2])  # broken
    train_set.dataset.transform = lambda i: -i  # broken
    augmented = Numbers(lambda i: -i)  # fixed
    order = torch.randperm(len(plain)).tolist()  # fixed
    train_set, val_set = Subset(augmented, order[2:]), Subset(plain, order[:2])  # fixed
    assert min(train_set) < 0
    assert min(val_set) >= 0


def module_list(device):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 2) for _ in range(3)]  # broken
            self.layers = nn.ModuleList(  # fixed
                [nn.Linear(2, 2) for _ in range(3)]  # fixed
            )  # fixed

    assert len(list(Net().to(device).parameters())) == 6


def parameter_unchanged(device):
    threshold = nn.Parameter(torch.zeros(1, device=device))
    x = torch.randn(8, device=device)
    mask = (x > threshold).float()  # broken
    mask = torch.sigmoid((x - threshold) * 20)  # fixed
    (mask.mean() + 0 * threshold.sum()).backward()
    assert threshold.grad.abs().sum() > 0


def kl_div(device):
    logits = torch.randn(4, 5)
    p = F.softmax(logits, dim=-1)
    q = p  # broken
    q = F.log_softmax(logits, dim=-1)  # fixed
    assert F.kl_div(q, p, reduction="batchmean").abs() < 1e-5


def ctc(device):
    logits = torch.randn(2, 6, 5)  # (batch, time, classes)
    log_probs = logits.permute(1, 0, 2)  # broken
    log_probs = logits.log_softmax(dim=2).permute(1, 0, 2)  # fixed
    input_lengths = torch.full((2,), log_probs.shape[0])
    targets = torch.tensor([[1, 2], [3, 3]])
    lengths = torch.full((2,), 2)
    loss = nn.CTCLoss(blank=0)(log_probs * 1.0, targets, input_lengths, lengths)
    best = [0, 3, 3, 0, 3, 0]
    text = [k for k, _ in itertools.groupby(best) if k != 0]
    assert text == [3, 3]
    assert torch.allclose(log_probs.exp().sum(dim=2), torch.ones(6, 2))
    assert loss > 0


def hidden_between(device):
    lstm, head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)
    state, steps = None, 0
    for x in torch.randn(3, 1, 5, 3):
        output, state = lstm(x, state)
        state = tuple(s.detach() for s in state)  # fixed
        try:
            head(output).mean().backward()
        except RuntimeError:
            break
        steps += 1
    assert steps == 3


def pretrained_embedding(device):
    matrix = torch.randn(6, 3)
    embedding = nn.Embedding(6, 3)  # broken
    embedding = nn.Embedding.from_pretrained(matrix, freeze=False)  # fixed
    assert torch.equal(embedding.weight, matrix)
    assert embedding.weight.requires_grad


def more_channels(device):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False)).to(device)
    old, x = model[0], torch.rand(1, 1, 8, 8, device=device)
    expected = old(x.expand(-1, 3, -1, -1))
    new = nn.Conv2d(6, 4, 3, bias=False).to(device)
    with torch.no_grad():
        mean = old.weight.mean(dim=1, keepdim=True)
        new.weight.copy_(mean.expand_as(new.weight) * 3 / 6)  # fixed
    assert torch.allclose(new(x.expand(-1, 6, -1, -1)), expected, atol=1e-5)


def initialization(device):
    def initialize(module):
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to(device)
    model.apply(initialize)  # fixed
    assert model[0].bias.abs().sum() == 0


def regularization(device):
    model = nn.Linear(4, 1, bias=False).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0)
    loss = 0 * model(torch.ones(2, 4, device=device)).mean()
    l1 = sum(p.abs().sum() for p in model.parameters())  # fixed
    loss = loss + 1e-1 * l1  # fixed
    before = model.weight.detach().abs().sum()
    loss.backward()
    optimizer.step()
    assert model.weight.abs().sum() < before


def early_stopping(device):
    model = nn.Linear(2, 1).to(device)
    best = model.state_dict()  # broken
    best = copy.deepcopy(model.state_dict())  # fixed
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1)  # the training goes on
    assert torch.equal(best["weight"], before)


def average_weights(device):
    model = nn.Linear(2, 1).to(device)
    ema = copy.deepcopy(model)  # broken
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))  # fixed
    ema.update_parameters(model)  # fixed
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.add_(1)
    ema.update_parameters(model)  # fixed
    weight = next(ema.parameters())
    assert torch.allclose(weight, before + 0.5)


def shared_weights(device):
    embedding = nn.Embedding(5, 3).to(device)
    head = nn.Linear(3, 5, bias=False).to(device)
    head.weight.data.copy_(embedding.weight.data)  # broken
    head.weight = embedding.weight  # fixed
    with torch.no_grad():
        embedding.weight.add_(1)
    assert torch.equal(head.weight, embedding.weight)


def set_weights(device):
    kernel = np.arange(6, dtype=np.float32).reshape(2, 3)  # Keras: (inputs, outputs)
    layer = nn.Linear(2, 3)
    array = kernel.reshape(3, 2)  # broken
    array = kernel.T  # fixed
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(array.copy()))
        layer.bias.zero_()
    x = torch.ones(1, 2)
    assert np.allclose(layer(x).detach().numpy(), x.numpy() @ kernel)


def count_parameters(device):
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).to(device)
    number = len(list(model.parameters()))  # broken
    number = sum(p.numel() for p in model.parameters() if p.requires_grad)  # fixed
    assert number == 4 * 3 + 3 + 3 * 2 + 2


def normalization(device):
    images = 0.3 + 0.1 * torch.rand(20, 3, 8, 8)
    mean, std = torch.zeros(3), torch.ones(3)  # broken
    mean, std = images.mean(dim=(0, 2, 3)), images.std(dim=(0, 2, 3))  # fixed
    normal = (images - mean[:, None, None]) / std[:, None, None]
    assert normal.mean().abs() < 1e-4
    assert (normal.std() - 1).abs() < 1e-2


def own_dataset(device):
    class Rows(torch.utils.data.Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return self.rows  # broken
            row = self.rows[i]  # fixed
            return torch.tensor(row[:2]), int(row[2])  # fixed

    loader = DataLoader(Rows([[0.1, 0.2, 0], [0.3, 0.4, 1]]), batch_size=2)
    x, y = next(iter(loader))
    assert torch.is_tensor(x)
    assert y.tolist() == [0, 1]


def shared_array(device):
    array = np.zeros(3, dtype=np.float32)
    x = torch.from_numpy(array)  # broken
    x = torch.tensor(array, dtype=torch.float32)  # fixed
    x += 1
    assert array.sum() == 0


def view_permute(device):
    x = torch.arange(24, device=device).reshape(1, 2, 4, 3)
    y = x.reshape(1, 3, 2, 4)  # broken
    y = x.permute(0, 3, 1, 2)  # fixed
    assert x[0, 0, 3, 1] == y[0, 1, 0, 3]


def pick_elements(device):
    x = torch.arange(12.0).reshape(3, 4)
    index = torch.tensor([0, 3, 1])
    chosen = x[:, index]  # broken
    chosen = x.gather(1, index.unsqueeze(1)).squeeze(1)  # fixed
    assert chosen.tolist() == [0, 7, 9]


def sample_gradients(device):
    x = torch.ones(3, 2, device=device, requires_grad=True)
    weight = torch.ones(2, device=device, requires_grad=True)
    y = (x * weight).sum(dim=1).square()
    create_graph = False  # broken
    create_graph = True  # fixed
    (dy_dx,) = torch.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert dy_dx.requires_grad
    (dy_dx.square().mean() + y.mean()).backward()  # one backward for the sum
    assert weight.grad is not None


def dropout_on(device):
    model = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout()).to(device)
    model.eval()
    for module in model.modules():  # fixed
        if isinstance(module, nn.Dropout):  # fixed
            module.train()  # fixed
    x = torch.ones(32, 8, device=device)
    assert not torch.equal(model(x), model(x))
    assert model[0].running_mean.sum() == 0  # batch norm stays as it is


def custom_function(device):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad, None  # broken
            return grad * 2 * x * ctx.factor, None  # fixed

    x = torch.full((2,), 3.0, device=device, requires_grad=True)
    Square.apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [12, 12]


def last_batch(device):
    gru, seen = nn.GRU(3, 4, batch_first=True), 0
    for x in DataLoader(torch.randn(10, 5, 3), batch_size=4):
        hidden = torch.zeros(1, 4, 4)  # broken
        hidden = torch.zeros(1, x.shape[0], 4, device=x.device)  # fixed
        try:
            gru(x, hidden)
        except RuntimeError:
            break
        seen += len(x)
    assert seen == 10


def metrics(device):
    labels = torch.tensor([1, 0, 0, 0, 1, 1])
    predicted = torch.tensor([1, 0, 0, 0, 0, 0])
    parts, tp, fp, fn = [], 0, 0, 0
    for positive, truth in ((predicted[i::2] == 1, labels[i::2] == 1) for i in (0, 1)):
        right = (positive & truth).sum()
        parts.append(2 * right / (positive.sum() + truth.sum()))
        tp += (positive & truth).sum().item()
        fp += (positive & ~truth).sum().item()
        fn += (~positive & truth).sum().item()
    dice = torch.stack(parts).mean()  # broken
    dice = 2 * tp / max(1, 2 * tp + fp + fn)  # fixed
    assert abs(dice - 0.5) < 1e-6


def which_loss(device):
    logits, labels = torch.tensor([[2.0], [-3.0]]), torch.tensor([1, 0])
    loss = nn.CrossEntropyLoss()(logits, torch.zeros_like(labels))  # broken
    loss = nn.BCEWithLogitsLoss()(logits.squeeze(1), labels.float())  # fixed
    assert 0 < loss < 0.2


def loss_reduction(device):
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    criterion = nn.CrossEntropyLoss()  # broken
    criterion = nn.CrossEntropyLoss(reduction="none")  # fixed
    assert criterion(logits, labels).shape == (4,)


def probabilities(device):
    logits = torch.randn(3, 5)
    values = logits  # broken
    values = logits.softmax(dim=1)  # fixed
    assert torch.allclose(values.sum(dim=1), torch.ones(3))


def plateau(device):
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    mode = "min"  # broken
    mode = "max"  # fixed
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode=mode, patience=2
    )
    for accuracy in (0.5, 0.6, 0.7, 0.8, 0.9):
        scheduler.step(accuracy)
    assert optimizer.param_groups[0]["lr"] == 0.1


def nan_backward(device):
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, torch.log(x), 0.0)  # broken
    safe = torch.where(x > 0, x, 1.0)  # fixed
    y = torch.where(x > 0, torch.log(safe), 0.0)  # fixed
    y.sum().backward()
    assert torch.isfinite(x.grad).all()


def lbfgs(device):
    weight = nn.Parameter(torch.tensor([5.0]))
    optimizer = torch.optim.LBFGS([weight], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (weight - 2).square().sum()
        loss.backward()
        return loss

    try:
        optimizer.step()  # broken
        optimizer.step(closure)  # fixed
    except TypeError:
        pass
    assert abs(weight.item() - 2) < 1e-3


def black_masks(device):
    scan = torch.tensor([[0, 255], [255, 0]])
    mask = (scan / 255 * 0.5).long()  # broken
    mask = (scan > 127).long()  # fixed
    assert mask.unique().tolist() == [0, 1]


def teacher_model(device):
    teacher, student = nn.Linear(4, 2).to(device), nn.Linear(4, 2).to(device)
    x = torch.ones(2, 4, device=device)
    teacher.eval()
    target = teacher(x)  # broken
    with torch.no_grad():  # fixed
        target = teacher(x)  # fixed
    (student(x) - target).square().mean().backward()
    assert teacher.weight.grad is None


def batch_parts(device):
    dataset = [(torch.full((3, 4, 4), float(i)), i) for i in range(4)]
    data = next(iter(DataLoader(dataset, batch_size=4)))
    image = data[0]  # broken
    inputs, _ = data  # fixed
    image = inputs[0]  # fixed
    assert image.shape == (3, 4, 4)
    assert data[1].shape == (4,)


def forgetting(device):
    backbone, head = nn.Linear(4, 4).to(device), nn.Linear(4, 1).to(device)
    before = backbone.weight.detach().clone()
    groups = [{"params": [*backbone.parameters(), *head.parameters()]}]  # broken
    groups = [  # fixed
        {"params": backbone.parameters(), "lr": 1e-5},  # fixed
        {"params": head.parameters(), "lr": 1e-3},  # fixed
    ]  # fixed
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    head(backbone(torch.ones(2, 4, device=device))).sum().backward()
    optimizer.step()
    assert (backbone.weight - before).abs().max() < 1e-4


def order_of_results(device):
    dataset = [(torch.tensor(float(i)), i) for i in range(100)]
    loader = DataLoader(dataset, batch_size=10, shuffle=True)
    outputs = [x for x, _ in loader]  # broken
    labels = [y for _, y in loader]  # broken
    pairs = list(loader)  # fixed
    outputs = [x for x, _ in pairs]  # fixed
    labels = [y for _, y in pairs]  # fixed
    assert (torch.cat(outputs).long() == torch.cat(labels)).all()
