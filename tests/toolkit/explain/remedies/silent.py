"""Mistakes without an error: without the remedy, what the program is for fails."""

import copy
import gc
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from to_device.sim import ledger, memory


def memory_not_freed(device):
    outputs = torch.ones(1 << 10, device=device)
    loss = outputs.sum()
    del outputs, loss  # fixed
    gc.collect()
    torch.accelerator.empty_cache()
    assert memory.allocated < 4 << 10


def validation_memory(device):
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)]).to(device)
    inputs = torch.ones(64, 64, device=device)
    model.eval()
    memory.reset_peak()
    before = memory.allocated
    with torch.inference_mode():  # fixed
        outputs = model(inputs)
    assert outputs.shape == (64, 64)
    assert memory.peak - before < 4 * inputs.nbytes


def memory_grows(device):
    model = nn.Linear(64, 64).to(device)
    used, total = [], 0
    for _ in range(4):
        loss = model(torch.ones(64, 64, device=device)).square().mean()
        total += loss  # broken
        total += loss.item()  # fixed
        used.append(memory.allocated)
    assert used[-1] == used[1]


def memory_first_step(device):
    model = nn.Linear(64, 64).to(device)
    inputs = torch.ones(64, 64, device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)  # broken
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # fixed
    used = []
    for _ in range(4):
        used.append(memory.allocated)
        model(inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    assert used[1] == used[2] == used[3]  # level after the first step
    assert used[1] - used[0] < 64 * 64


def loss_in_half(device):
    model = nn.Linear(64, 64).to(device)
    inputs = torch.full((64, 64), 300.0, device=device)
    criterion = nn.MSELoss(reduction="sum")
    with torch.autocast(device.type, dtype=torch.float16):
        outputs = model(inputs)
    labels = torch.zeros_like(outputs)
    loss = criterion(outputs, labels)  # broken
    loss = criterion(outputs.float(), labels.float())  # fixed
    assert loss.isfinite()


def checkpoint_on_gpu(device):
    model = nn.Linear(64, 64).to(device)
    torch.save(model.state_dict(), "model.pt")
    before = memory.allocated
    checkpoint = torch.load("model.pt", map_location=device)  # broken
    checkpoint = torch.load("model.pt", map_location="cpu")  # fixed
    model.load_state_dict(checkpoint)
    assert memory.allocated == before


def slows_down(device):
    model = nn.Linear(64, 64).to(device)
    used, losses = [], []
    for _ in range(4):
        loss = model(torch.ones(64, 64, device=device)).square().mean()
        losses.append(loss)  # broken
        losses.append(loss.item())  # fixed
        used.append(memory.allocated)
    assert used[-1] == used[1]


def detach(device):
    history = []
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        loss = (w * 2).sum()
        history.append(loss)  # broken
        history.append(loss.detach())  # fixed
    assert not any(loss.requires_grad for loss in history)


def item_every_step(device):
    losses = torch.ones(5, device=device)
    total = torch.zeros((), device=device)
    with ledger.counting() as counts:
        for loss in losses:
            total += loss.item()  # broken
            total += loss.detach()  # fixed
    assert counts.waits.total() == 0
    assert total.item() == 5


def no_zero_grad(device):
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()  # fixed
        (2 * w).sum().backward()
        optimizer.step()
    torch.testing.assert_close(w.item(), 0.4)


def no_eval_mode(device):
    model = nn.Dropout(0.5)
    model.eval()  # fixed
    assert model(torch.ones(100)).sum() == 100


def loaded_results(device):
    model = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5), nn.Linear(50, 1))
    loaded = nn.Sequential(nn.Linear(4, 50), nn.Dropout(0.5), nn.Linear(50, 1))
    x = torch.ones(2, 4)
    model.eval()
    loaded.load_state_dict(model.state_dict())
    loaded.eval()  # fixed
    assert torch.equal(model(x), loaded(x))


def saving(device):
    model, restored = nn.Linear(3, 1), nn.Linear(3, 1)
    torch.save(model.state_dict(), "model.pt")
    state = torch.load("model.pt", map_location=device)
    restored.load_state_dict(state)  # fixed
    assert torch.equal(restored.weight, model.weight)


def mean_of_batch_means(device):
    labels = torch.tensor([1] * 4 + [0])
    predicted = torch.ones(5, dtype=torch.long)
    hits, batches = 0, 0
    for part in torch.arange(5).split(4):
        hits += (predicted[part] == labels[part]).float().mean()  # broken
        hits += (predicted[part] == labels[part]).sum()  # fixed
        batches += 1
    accuracy = hits / batches  # broken
    accuracy = hits / len(labels)  # fixed
    torch.testing.assert_close(accuracy, torch.tensor(0.8))


def to_not_reassigned(device):
    x = torch.ones(3)
    x.to(device)  # broken
    x = x.to(device)  # fixed
    assert x.device.type == device.type


def tensor_not_registered(device):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            mask = torch.ones(3)
            self.mask = mask  # broken
            self.register_buffer("mask", mask)  # fixed

    model = Masked().to(device)
    assert model.mask.device.type == device.type
    assert not list(model.parameters())


def move_to_gpu(device):
    model, inputs = nn.Linear(3, 1), torch.ones(2, 3)
    place = torch.accelerator.current_accelerator(check_available=True) or "cpu"
    model.to(place)  # fixed
    inputs = inputs.to(place)  # fixed
    assert model(inputs).device.type == device.type


def colab_limit(device):
    accelerator = torch.accelerator.current_accelerator
    place = torch.device("cpu")  # broken
    place = accelerator(check_available=True) or "cpu"  # fixed
    assert torch.ones(3, device=place).device.type == device.type


def softmax_before_loss(device):
    inputs, labels = torch.eye(3).repeat(8, 1), torch.arange(3).repeat(8)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(40):
        optimizer.zero_grad()
        outputs = model(inputs)
        outputs = outputs.softmax(1)  # broken
        loss = nn.functional.cross_entropy(outputs, labels)  # fixed
        loss = nn.functional.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()
    assert loss < 0.4


def not_learning(device):
    inputs, labels = torch.eye(3).repeat(8, 1), torch.arange(3).repeat(8)
    model, criterion = nn.Linear(3, 3), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(40):
        optimizer.zero_grad()
        logits = model(inputs)
        loss = criterion(logits.softmax(1), labels)  # broken
        loss = criterion(logits, labels)  # fixed
        loss.backward()
        optimizer.step()
    assert loss < 0.4


def mixed_precision(device):
    model, x = nn.Linear(4, 4), torch.ones(2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):  # fixed
        outputs = model(x)
    outputs.float().sum().backward()
    assert outputs.dtype == torch.bfloat16
    assert model.weight.grad.dtype == torch.float32


def nan_half(device):
    x = torch.full((2, 512), 16.0)
    layer = nn.Linear(512, 2)
    nn.init.constant_(layer.weight, 16.0)
    with torch.autocast("cpu", dtype=torch.float16):  # broken
        outputs = layer(x)  # broken
    with torch.autocast("cpu", dtype=torch.bfloat16):  # fixed
        outputs = layer(x)  # fixed
    assert torch.isfinite(outputs).all()


class Noisy:
    """Items with a random generator of their own."""

    rng = np.random.default_rng(0)

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.rng.random()


def seed(worker):
    dataset = torch.utils.data.get_worker_info().dataset
    dataset.rng = np.random.default_rng(torch.initial_seed())


def same_augmentation(device):
    options = {"num_workers": 2, "multiprocessing_context": "fork"}
    loader = DataLoader(Noisy(), **options)  # broken
    loader = DataLoader(Noisy(), worker_init_fn=seed, **options)  # fixed
    assert len({number.item() for number in loader}) == 8


def not_reproducible(device):
    torch.manual_seed(0)
    first = torch.rand(3)
    torch.rand(1)
    torch.manual_seed(0)  # fixed
    torch.use_deterministic_algorithms(True)  # fixed
    again = torch.rand(3)
    torch.use_deterministic_algorithms(False)
    assert torch.equal(first, again)


def cpu_only(device):
    model, x = nn.Linear(3, 1), torch.ones(2, 3)
    device = torch.device("cpu")  # fixed
    model.to(device)
    assert model(x.to(device)).device.type == "cpu"


def slow_inference(device):
    model, batch = nn.Linear(3, 1), torch.ones(2, 3)
    model.eval()
    with torch.inference_mode():  # fixed
        outputs = model(batch)
    assert not outputs.requires_grad


def inference_memory(device):
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to(device)
    inputs = torch.ones(64, 64)
    memory.reset_peak()
    before = memory.allocated
    outputs = model(inputs.to(device)).cpu()  # broken
    with torch.inference_mode():  # fixed
        parts = torch.split(inputs.to(device), 8)  # fixed
        outputs = torch.cat([model(part).cpu() for part in parts])  # fixed
    assert outputs.shape == (64, 64)
    assert memory.peak - before < 4 * inputs.nbytes


def resumed_schedule(device):
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=10)
    for _ in range(9):
        optimizer.step()
        scheduler.step()
    last = optimizer.param_groups[0]["lr"]
    resumed = torch.optim.SGD(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(resumed, total_iters=20)  # broken
    for group in resumed.param_groups:  # fixed
        group["lr"] = last  # fixed
    scheduler = torch.optim.lr_scheduler.ConstantLR(resumed, factor=1.0)  # fixed
    for _ in range(9):
        resumed.step()
        scheduler.step()
    assert resumed.param_groups[0]["lr"] <= last + 1e-9


def batch_first(device):
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 5)  # broken
    lstm = nn.LSTM(3, 5, batch_first=True)  # fixed
    x = torch.rand(4, 6, 3)
    alone, _ = lstm(x[:1])
    together, _ = lstm(x)
    torch.testing.assert_close(together[:1], alone)  # items don't see each other
    assert not torch.equal(together[:1, -1], lstm(x[:1, -1:])[0][:, -1])


def accumulation(device):
    parameter = torch.ones(1, requires_grad=True)
    for part in torch.arange(8.0).chunk(4):
        loss = (part * parameter).mean()
        loss = loss / 4  # fixed
        loss.backward()
    torch.testing.assert_close(parameter.grad, torch.tensor([3.5]))


def dataset_cache(device):
    kept = []

    def item(i):
        image = torch.full((1 << 10,), float(i))
        kept.append(image)  # broken
        return image

    assert sum(item(i).sum() for i in range(4)) == 6 << 10
    assert not kept


def all_masked(device):
    attention = nn.MultiheadAttention(4, 1, batch_first=True).eval()
    x, mask = torch.rand(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool)
    mask[1] = True  # an empty sequence
    mask[:, 0] = False  # fixed
    outputs, _ = attention(x, x, x, key_padding_mask=mask)
    assert torch.isfinite(outputs).all()


def iterable_copies(device):
    own = "first, step = 0, 1"  # broken
    own = "first, step = info.id, info.num_workers"  # fixed
    lines = (
        "import itertools, torch",
        "class Items(torch.utils.data.IterableDataset):",
        "    def __iter__(self):",
        "        info = torch.utils.data.get_worker_info()",
        f"        {own}",
        "        yield from itertools.islice(range(4), first, None, step)",
        "if __name__ == '__main__':",
        "    options = {'batch_size': None, 'num_workers': 2}",
        "    loader = torch.utils.data.DataLoader(Items(), **options)",
        "    print(sorted(map(int, loader)))",
    )
    Path("items.py").write_text("\n".join(lines))
    command = [sys.executable, "items.py"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "[0, 1, 2, 3]\n"


def missing_scaler(device):
    weight = torch.ones(2, dtype=torch.half, requires_grad=True)
    loss = (weight.float() * 1e-9).sum()
    scale = 1  # broken
    scale = torch.amp.GradScaler("cpu").get_scale()  # fixed
    (loss * scale).backward()
    unscaled = weight.grad.float() / scale
    torch.testing.assert_close(unscaled, torch.full((2,), 1e-9), rtol=0.01, atol=0)


def stale_optimizer(device):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # broken
    model[1] = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # fixed
    before = model[1].weight.detach().clone()
    model(torch.ones(4, 2, device=device)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, model[1].weight)


def regression(device, count):
    """A model, `count` inputs, and targets that it can learn."""
    inputs = torch.randn(count, 4)
    targets = inputs.sum(dim=1, keepdim=True)
    return nn.Linear(4, 1).to(device), inputs.to(device), targets.to(device)


def learning_rate(device):
    model, inputs, targets = regression(device, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)  # broken
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)  # fixed
    for _ in range(40):
        optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.01


def batch_and_rate(device):
    model, inputs, targets = regression(device, 256)
    batch_size, lr = 64, 0.01
    lr = 0.01 * batch_size / 4  # fixed
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(5):
        for rows in torch.arange(256, device=device).split(batch_size):
            optimizer.zero_grad()
            loss = (model(inputs[rows]) - targets[rows]).square().mean()
            loss.backward()
            optimizer.step()
    assert loss.item() < 0.01  # as with batches of 4 items


def imbalanced(device):
    labels = torch.tensor([0] * 190 + [1] * 10)
    inputs = (torch.randn(200) + 1.5 * labels).unsqueeze(1)
    model = nn.Linear(1, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    loss = nn.CrossEntropyLoss()
    counts = torch.bincount(labels).float()  # fixed
    weight = (counts.sum() / counts / len(counts)).to(device)  # fixed
    loss = nn.CrossEntropyLoss(weight=weight)  # fixed
    for _ in range(100):
        optimizer.zero_grad()
        loss(model(inputs.to(device)), labels.to(device)).backward()
        optimizer.step()
    found = model(inputs.to(device)).argmax(dim=1).cpu()
    assert found[labels == 1].float().mean() >= 0.5


def class_folders(device):
    from torchvision.datasets import ImageFolder

    for folder in ("train/cat", "train/dog", "train/fox", "test/dog", "test/fox"):
        Path(folder).mkdir(parents=True)
        Path(folder, "1.png").touch()
    train_set, test_set = ImageFolder("train"), ImageFolder("test")
    paths = [Path(path) for path, _ in test_set.imgs]
    labels = test_set.targets  # broken
    labels = [train_set.class_to_idx[path.parent.name] for path in paths]  # fixed
    outputs = torch.eye(3, device=device)[1:]  # a dog and a fox, by a trained model
    assert outputs.argmax(dim=1).eq(torch.tensor(labels, device=device)).all()


def resume_state(device):
    model, inputs, targets = regression(device, 64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        (model(inputs) - targets).square().mean().backward()
        optimizer.step()

    for _ in range(5):
        step()
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    checkpoint = {"model": weights, "optimizer": optimizer.state_dict()}
    torch.save(checkpoint, "checkpoint.pt")
    step()
    uninterrupted = model.weight.detach().clone()
    checkpoint = torch.load("checkpoint.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    optimizer.load_state_dict(checkpoint["optimizer"])  # fixed
    step()
    assert torch.allclose(model.weight, uninterrupted)


def one_output(device):
    inputs = torch.tensor([[-1.0], [1.0]] * 32).to(device)
    labels = (inputs[:, 0] > 0).long()
    model = nn.Linear(1, 1).to(device)
    nn.init.constant_(model.weight, -1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for _ in range(20):
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = nn.CrossEntropyLoss()(outputs, torch.zeros_like(labels))  # broken
        loss = nn.BCEWithLogitsLoss()(outputs.squeeze(1), labels.float())  # fixed
        loss.backward()
        optimizer.step()
    predicted = model(inputs).squeeze(1) > 0
    assert predicted.eq(labels.bool()).all()


def overfitting(device):
    inputs = torch.randn(24, 20)
    labels = (inputs[:, 0] > 0).float()
    inputs, labels = inputs.to(device), labels.to(device)
    train, val = slice(8), slice(8, 24)
    model = nn.Linear(20, 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    best = float("inf")
    for _ in range(200):
        optimizer.zero_grad()
        criterion(model(inputs[train]).squeeze(1), labels[train]).backward()
        optimizer.step()
        with torch.no_grad():
            loss = criterion(model(inputs[val]).squeeze(1), labels[val]).item()
        if loss < best:
            best = loss
            torch.save(model.state_dict(), "best.pt")  # fixed
    if Path("best.pt").exists():
        model.load_state_dict(torch.load("best.pt"))
    with torch.no_grad():
        loss = criterion(model(inputs[val]).squeeze(1), labels[val]).item()
    assert abs(loss - best) < 1e-6


def scaled_masks(device):
    mask = np.array([[0, 1], [2, 1]], dtype=np.uint8)  # a class for each pixel
    mask = torch.from_numpy(mask / 255).long()  # broken
    mask = torch.from_numpy(np.array(mask)).long()  # fixed
    assert mask.to(device).unique().tolist() == [0, 1, 2]


def accuracy_over_one(device):
    labels = torch.ones(100, dtype=torch.long)
    loader = DataLoader(labels, batch_size=10)
    hits = sum((batch == 1).sum().item() for batch in loader)
    accuracy = hits / len(loader)  # broken
    accuracy = hits / len(loader.dataset)  # fixed
    assert accuracy <= 1


def negative_loss(device):
    logits, labels = torch.zeros(4, 2), torch.tensor([0, 1, 1, 0])
    loss = nn.NLLLoss()(logits.softmax(dim=1), labels)  # broken
    loss = nn.CrossEntropyLoss()(logits, labels)  # fixed
    assert loss >= 0


def validation_better(device):
    model, images = nn.Sequential(nn.Dropout(), nn.Linear(8, 1)), torch.ones(64, 8)
    model.eval()
    val_loss = model(images).square().mean()
    model.train()  # broken
    model.eval()  # fixed
    train_loss = model(images).square().mean()
    torch.testing.assert_close(train_loss, val_loss)


def same_model_copied(device):
    model = nn.Linear(2, 1)
    before = model.weight.detach().clone()
    best = model.state_dict()  # broken
    best = copy.deepcopy(model.state_dict())  # fixed
    with torch.no_grad():
        model.weight += 1
    assert torch.equal(best["weight"], before)
