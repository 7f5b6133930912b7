"""Shapes, dtypes, indices, and what a tensor can be made of."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader


def dtype_mismatch(device):
    model = nn.Linear(4, 2)
    inputs = torch.from_numpy(np.ones((8, 4)))
    inputs = inputs.to(next(model.parameters()).dtype)  # fixed
    assert model(inputs).shape == (8, 2)


def target_dtype(device):
    outputs = torch.zeros(4, 2)
    labels = torch.tensor([0, 1, 1, 0], dtype=torch.int32)
    labels = labels.long()  # fixed
    loss = nn.functional.cross_entropy(outputs, labels)
    torch.testing.assert_close(loss, torch.tensor(2.0).log())


def target_float(device):
    outputs = torch.zeros(2, requires_grad=True)
    labels = torch.tensor([1, 0])
    labels = labels.float()  # fixed
    nn.HuberLoss()(outputs, labels).backward()
    assert outputs.grad.tolist() == [-0.5, 0]


def inplace_dtype(device):
    x, y = torch.tensor([1, 2]), torch.tensor([0.5, 0.5])
    x += y  # broken
    x = x + y  # fixed
    assert x.tolist() == [1.5, 2.5]


def assigned_dtype(device):
    x, values = torch.zeros(3).half(), torch.ones(2)
    index = torch.tensor([0, 2])
    x[index] = values  # broken
    x[index] = values.to(x.dtype)  # fixed
    assert x.tolist() == [1, 0, 1]


def attention_dtype(device):
    attend = nn.functional.scaled_dot_product_attention
    value = torch.ones(1, 2, 4, 8).bfloat16()
    query = key = value.float()
    query, key = query.to(value.dtype), key.to(value.dtype)  # fixed
    assert attend(query, key, value).dtype == torch.bfloat16


def attention_kernel(device):
    import warnings

    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = key = value = torch.ones(1, 2, 4, 8)
    kernels = [SDPBackend.CUDNN_ATTENTION]  # broken
    kernels = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]  # fixed
    with sdpa_kernel(kernels), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = nn.functional.scaled_dot_product_attention(query, key, value)
    assert torch.equal(y, value)


def cpu_half(device):
    x = torch.eye(3).half()
    x = x.float()  # fixed
    assert torch.linalg.det(x) == 1


def integer_input(device):
    model = nn.Linear(4, 2)
    pixels = torch.full((8, 4), 255, dtype=torch.uint8)
    images = pixels  # broken
    images = pixels.float() / 255  # fixed
    assert images.mean() == 1
    assert model(images).shape == (8, 2)


def index_dtype(device):
    embedding = nn.Embedding(10, 3)
    indices = torch.tensor([1.0, 2.0])
    indices = indices.long()  # fixed
    assert embedding(indices).shape == (2, 3)


def numpy_bfloat16(device):
    tensor = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    array = tensor.detach().cpu().numpy()  # broken
    array = tensor.detach().float().cpu().numpy()  # fixed
    assert array.sum() == 3


def bfloat16_operation(device):
    x = torch.eye(3).bfloat16()
    y = torch.linalg.det(x)  # broken
    y = torch.linalg.det(x.float()).to(x.dtype)  # fixed
    assert y == 1


def shapes_multiplied(device):
    x = torch.ones(8, 3, 20)
    layer = nn.Linear(x.shape[1], 5)  # broken
    layer = nn.Linear(x.shape[-1], 5)  # fixed
    assert layer(x).shape == (8, 3, 5)


def rnn_input_size(device):
    x = torch.ones(2, 5, 7)
    layer = nn.LSTM(5, 4, batch_first=True)  # broken
    layer = nn.LSTM(x.shape[-1], 4, batch_first=True)  # fixed
    assert layer(x)[0].shape == (2, 5, 4)


def not_flattened(device):
    layer = nn.Linear(784, 10)
    x = torch.ones(64, 28, 28)
    x = x.flatten(1)  # fixed
    assert layer(x).shape == (64, 10)


def added_tokens(device):
    tokenizer = [*"abc", "<extra>"]
    embedding = nn.Embedding(3, 8)
    if len(tokenizer) > embedding.num_embeddings:  # fixed
        embedding = nn.Embedding(len(tokenizer), 8)  # fixed
    ids = torch.arange(len(tokenizer))
    assert embedding(tokenizer and ids).shape == (4, 8)


def conv_channels(device):
    images = torch.ones(2, 16, 28, 28)
    layer = nn.Conv2d(12, 8, kernel_size=3)  # broken
    layer = nn.Conv2d(images.shape[1], 8, kernel_size=3)  # fixed
    assert layer(images).shape == (2, 8, 26, 26)


def batch_norm_channels(device):
    x = torch.ones(2, 4, 5, 5)
    norm = nn.BatchNorm2d(3)  # broken
    norm = nn.BatchNorm2d(x.shape[1])  # fixed
    assert norm(x).shape == x.shape


def layer_norm_shape(device):
    x = torch.ones(2, 5, 4)
    norm = nn.LayerNorm(x.shape[1])  # broken
    norm = nn.LayerNorm(x.shape[-1])  # fixed
    assert norm(x).shape == x.shape


def groups_divide(device):
    channels = 48
    norm = nn.GroupNorm(32, channels)  # broken
    norm = nn.GroupNorm(math.gcd(32, channels), channels)  # fixed
    assert norm(torch.ones(2, channels, 5)).shape == (2, channels, 5)


def gray_images(device):
    images = torch.ones(2, 1, 28, 28)
    layer = nn.Conv2d(3, 8, kernel_size=3)
    images = images.expand(-1, 3, -1, -1)  # fixed
    assert layer(images).shape == (2, 8, 26, 26)


def alpha_channel(device):
    images = torch.ones(2, 4, 28, 28)
    layer = nn.Conv2d(3, 8, kernel_size=3)
    images = images[:, :3]  # fixed
    assert layer(images).shape == (2, 8, 26, 26)


def channels_last(device):
    images = torch.ones(2, 28, 28, 3)
    layer = nn.Conv2d(3, 8, kernel_size=3)
    images = images.permute(0, 3, 1, 2)  # fixed
    assert layer(images).shape == (2, 8, 26, 26)


def view_stride(device):
    x = torch.arange(24).reshape(2, 3, 4).permute(0, 2, 1)
    flat = x.view(len(x), -1)  # broken
    flat = x.reshape(len(x), -1)  # fixed
    assert flat[0, :3].tolist() == [0, 4, 8]


def image_too_small(device):
    images = torch.ones(1, 3, 2, 2)
    layer = nn.Conv2d(3, 8, kernel_size=3)
    images = torch.nn.functional.interpolate(images, size=(64, 64))  # fixed
    assert layer(images).shape == (1, 8, 62, 62)


def target_size(device):
    outputs = torch.zeros(64, 1)
    targets = torch.ones(64)
    criterion = nn.BCEWithLogitsLoss()
    loss = criterion(outputs, targets)  # broken
    loss = criterion(outputs.squeeze(1), targets)  # fixed
    torch.testing.assert_close(loss, torch.tensor(2.0).log())


def one_hot(device):
    outputs = torch.zeros(4, 3)
    labels = torch.tensor([[0, 1, 0]] * 4)
    loss = nn.functional.cross_entropy(outputs, labels[:, :1])  # broken
    loss = nn.functional.cross_entropy(outputs, labels.argmax(dim=1))  # fixed
    torch.testing.assert_close(loss, torch.tensor(3.0).log())


def class_dimension(device):
    labels = torch.tensor([[0, 1, 2, 1]] * 2)
    outputs = 100 * nn.functional.one_hot(labels, 3).float()
    loss = nn.functional.cross_entropy(outputs, labels)  # broken
    loss = nn.functional.cross_entropy(outputs.transpose(1, 2), labels)  # fixed
    assert loss < 1e-6


def label_outside(device):
    outputs = torch.zeros(4, 10)
    labels = torch.tensor([1, 10, 5, 3])
    labels = labels - 1  # fixed
    loss = nn.functional.cross_entropy(outputs, labels)
    torch.testing.assert_close(loss, torch.tensor(10.0).log())


def embedding_index(device):
    ids = torch.tensor([0, 7, 10])
    embedding = nn.Embedding(10, 3)  # broken
    embedding = nn.Embedding(11, 3)  # fixed
    assert embedding(ids).shape == (3, 3)


def index_too_large(device):
    scores = torch.arange(10.0)
    index = torch.tensor([1, 10])
    index = index - 1  # fixed
    assert scores[index].tolist() == [0, 9]


def single_number(device):
    loss = torch.ones(3).sum()
    value = loss.data[0]  # broken
    value = loss.item()  # fixed
    assert value == 3


def ambiguous_truth(device):
    outputs, labels = torch.zeros(4, 2), torch.tensor([0, 1, 1, 0])
    loss = nn.CrossEntropyLoss(outputs, labels)  # broken
    loss = nn.CrossEntropyLoss()(outputs, labels)  # fixed
    torch.testing.assert_close(loss, torch.tensor(2.0).log())


def not_a_tensor(device):
    x, weight = np.ones((2, 3)), torch.ones(1, 3, device=device)
    x = torch.as_tensor(x, dtype=torch.float32, device=device)  # fixed
    assert nn.functional.linear(x, weight).tolist() == [[3], [3]]


def value_is_none(device):
    def load():
        x = torch.ones(3)
        return None  # broken
        return x  # fixed

    assert load().to(device).sum().item() == 3


def strings(device):
    names, classes = ["dog", "cat"], ["cat", "dog"]
    labels = torch.tensor(names)  # broken
    labels = torch.tensor([classes.index(name) for name in names])  # fixed
    assert labels.tolist() == [1, 0]


def transform_order(device):
    from torchvision.transforms import ToTensor, v2

    image = torch.full((3, 4, 4), 255, dtype=torch.uint8)
    transform = ToTensor()  # broken
    convert = v2.ToDtype(torch.float32, scale=True)
    transform = v2.Compose([v2.ToImage(), convert])  # fixed
    assert transform(image).mean() == 1


def negative_strides(device):
    array = np.arange(6.0).reshape(2, 3)[:, ::-1]
    image = torch.from_numpy(array)  # broken
    image = torch.from_numpy(array.copy())  # fixed
    assert image[0].tolist() == [2, 1, 0]


def ragged_list(device):
    array = np.array([1, 2.5], dtype=object)
    tensor = torch.tensor(array)  # broken
    tensor = torch.tensor(array.astype("float32"))  # fixed
    assert tensor.tolist() == [1, 2.5]


def uneven_lists(device):
    items = [[1, 2], [3, 4, 5]]
    tensor = torch.tensor(items)  # broken
    rows = [torch.tensor(x) for x in items]
    tensor = nn.utils.rnn.pad_sequence(rows, batch_first=True)  # fixed
    assert tensor.tolist() == [[1, 2, 0], [3, 4, 5]]


def list_of_tensors(device):
    tensors = [torch.ones(2), torch.zeros(2)]
    tensor = torch.tensor(tensors)  # broken
    tensor = torch.stack(tensors)  # fixed
    assert tensor.sum() == 2


def item_of_many(device):
    loss = nn.MSELoss(reduction="none")(torch.ones(4), torch.zeros(4))
    value = loss.item()  # broken
    value = loss.mean().item()  # fixed
    assert value == 1


def bce_range(device):
    logits = torch.tensor([2.0, -2.0])
    targets = torch.tensor([1.0, 0.0])
    loss = nn.BCELoss()(logits, targets)  # broken
    loss = nn.BCEWithLogitsLoss()(logits, targets)  # fixed
    torch.testing.assert_close(loss, -torch.tensor(2.0).sigmoid().log())


def batch_of_one(device):
    model = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
    dataset = torch.ones(65, 4)
    loader = DataLoader(dataset, batch_size=64, shuffle=True)  # broken
    loader = DataLoader(dataset, batch_size=64, shuffle=True, drop_last=True)  # fixed
    assert [model(batch).shape for batch in loader] == [(64, 2)]


def instance_norm(device):
    model = nn.Sequential(nn.AvgPool2d(8), nn.InstanceNorm2d(3)).eval()
    images = torch.rand(32, 3, 8, 8)
    images = nn.functional.interpolate(images, size=(64, 64))  # fixed
    assert model(images).abs().max() > 0


def shapes_differ(device):
    outputs, labels = torch.zeros(64, 10), torch.zeros(64)
    hits = outputs == labels  # broken
    hits = outputs.argmax(dim=1) == labels  # fixed
    assert hits.shape == (64,)


def cat_sizes(device):
    x, skip = torch.ones(1, 3, 4, 4), torch.ones(1, 3, 5, 5)
    x = torch.nn.functional.interpolate(x, size=skip.shape[2:])  # fixed
    x = torch.cat([x, skip], dim=1)
    assert x.shape == (1, 6, 5, 5)


def reshape_size(device):
    x = torch.ones(8, 3, 5, 5)
    x = x.view(-1, 3 * 7 * 7)  # broken
    x = x.flatten(1)  # fixed
    assert x.shape == (8, 75)


def missing_batch(device):
    x = torch.ones(2, 8, 8)
    norm = nn.BatchNorm2d(2)
    x = x.unsqueeze(0)  # fixed
    assert norm(x).shape == (1, 2, 8, 8)


def dimension_missing(device):
    x = torch.ones(1, 3)  # the last batch has one item
    x = x.squeeze()  # broken
    x = x.squeeze(1)  # fixed
    assert x.sum(dim=1).tolist() == [3]


def batch_lost(device):
    x, labels = torch.ones(8, 4, 5), torch.zeros(8, dtype=torch.long)
    x = x.view(-1, 10)  # broken
    x = x.flatten(1)  # fixed
    assert nn.functional.cross_entropy(x, labels).ndim == 0


def hidden_size(device):
    x, hidden_size, num_layers = torch.ones(2, 5, 3), 4, 1
    lstm = nn.LSTM(3, hidden_size, batch_first=True)
    hidden = torch.zeros(num_layers, 3, hidden_size)  # broken
    hidden = torch.zeros(num_layers, x.shape[0], hidden_size)  # fixed
    assert lstm(x, (hidden, hidden))[0].shape == (2, 5, 4)


def attention_shapes(device):
    x = torch.ones(4, 2, 8)
    attention = nn.MultiheadAttention(16, 2, batch_first=True)  # broken
    attention = nn.MultiheadAttention(x.shape[-1], 2, batch_first=True)  # fixed
    assert attention(x, x, x)[0].shape == x.shape


def batch_matmul(device):
    query = key = torch.ones(2, 5, 4)
    scores = torch.bmm(query, key)  # broken
    scores = torch.bmm(query, key.transpose(1, 2))  # fixed
    assert scores.shape == (2, 5, 5)


def mask_shape(device):
    x, mask = torch.ones(3, 4), torch.tensor([True, False, True, False])
    y = x[mask]  # broken
    y = x[:, mask]  # fixed
    assert y.shape == (3, 2)


def stacked_numbers(device):
    losses = [torch.tensor(1.0), torch.tensor(2.0)]
    losses = torch.cat(losses)  # broken
    losses = torch.stack(losses)  # fixed
    assert losses.mean() == 1.5


def squeezed(device):
    outputs = torch.ones(1, 1)
    outputs = outputs.squeeze()  # broken
    outputs = outputs.squeeze(1)  # fixed
    assert [x.item() for x in outputs] == [1]


def bce_targets(device):
    outputs, targets = torch.full((2,), 0.5), torch.tensor([0.0, 255.0])
    targets = targets / 255  # fixed
    loss = nn.functional.binary_cross_entropy(outputs, targets)
    torch.testing.assert_close(loss, torch.tensor(2.0).log())


def collate_types(device):
    items = [None, torch.ones(3)]
    items = [item for item in items if item is not None]  # fixed
    (batch,) = DataLoader(items, batch_size=2)
    assert batch.shape[1:] == (3,)


def collate(device):
    import torch.nn.functional as F

    images = [torch.ones(3, 8, 8), torch.ones(3, 6, 9)]
    images = [F.interpolate(i[None], size=(8, 8))[0] for i in images]  # fixed
    (batch,) = DataLoader(images, batch_size=2)
    assert batch.shape == (2, 3, 8, 8)


def dataset_empty(device):
    import os

    from torchvision.datasets import ImageFolder

    os.makedirs("data/train/cat")
    open("data/train/cat/1.png", "w").close()
    dataset = []  # broken
    dataset = ImageFolder("data/train")  # fixed
    loader = DataLoader(dataset, shuffle=True)
    assert len(loader) == 1


def image_pairs(device):
    low, high = torch.ones(1, 3, 4, 6), torch.ones(1, 3, 9, 12)
    outputs = nn.functional.interpolate(low, scale_factor=2.0)
    targets = high
    targets = targets[..., : outputs.shape[-2], : outputs.shape[-1]]  # fixed
    assert nn.functional.l1_loss(outputs, targets) == 0


def permute_dimensions(device):
    images = torch.ones(2, 8, 8, 3)
    images = images.permute(2, 0, 1)  # broken
    images = images.permute(0, 3, 1, 2)  # fixed
    assert images.shape == (2, 3, 8, 8)


def transposed(device):
    x, w = torch.ones(64, 784), torch.ones(10, 784)
    y = x @ w  # broken
    y = x @ w.T  # fixed
    assert y.shape == (64, 10)


def empty_tensor(device):
    images, best = [torch.ones(2), torch.ones(0)], []
    for x in images:
        if x.numel() == 0:  # fixed
            continue  # fixed
        best.append(x.max().item())
    assert best == [1]


def length_zero(device):
    texts = [[1, 2], []]
    texts = [text for text in texts if len(text) > 0]  # fixed
    lengths = [len(text) for text in texts]
    inputs = torch.ones(len(texts), 2, 3)
    pack = nn.utils.rnn.pack_padded_sequence
    packed = pack(inputs, lengths, batch_first=True)
    assert packed.data.shape == (2, 3)


def bool_minus(device):
    mask = torch.tensor([True, False])
    mask = 1 - mask  # broken
    mask = ~mask  # fixed
    assert mask.tolist() == [False, True]


def overlapping_memory(device):
    x = torch.zeros(3)
    x = x.expand(4, 3)  # broken
    x = x.expand(4, 3).clone()  # fixed
    x += 1
    assert x.sum() == 12


def einsum(device):
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    y = torch.einsum("bij,bjk->bik", a, b)  # broken
    y = torch.einsum("ij,jk->ik", a, b)  # fixed
    assert y.sum() == 24


def tensor_as_index(device):
    items, index = ["a", "b", "c"], torch.tensor([2, 0])
    chosen = items[index]  # broken
    chosen = [items[i] for i in index.tolist()]  # fixed
    assert chosen == ["c", "a"]


def softmax_dimension(device):
    scores = torch.zeros(3, 2)
    y = nn.functional.softmax(scores)  # broken
    y = torch.softmax(scores, dim=1)  # fixed
    assert y.sum(dim=1).tolist() == [1, 1, 1]


def not_finite_matrix(device):
    a = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    totals = a.sum(dim=1, keepdim=True) - 1
    a = a / totals  # broken
    a = a / totals.clamp(min=1)  # fixed
    assert torch.linalg.svd(a).S.tolist() == [1, 1]
