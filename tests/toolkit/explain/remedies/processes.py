"""A loader's workers, and the ranks of distributed training."""

import os
import pickle
import socket
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader


def join(backend="gloo"):
    """Make a process group of one process."""
    store = dist.HashStore()
    dist.init_process_group(backend, store=store, rank=0, world_size=1)


def loader_options(device):
    loader = DataLoader(range(4), persistent_workers=True)  # broken
    loader = DataLoader(range(4), num_workers=2, persistent_workers=True)  # fixed
    assert len(loader) == 4


def sampler_options(device):
    sampler = torch.utils.data.RandomSampler(range(4))
    loader = DataLoader(range(4), sampler=sampler, shuffle=True)  # broken
    loader = DataLoader(range(4), sampler=sampler)  # fixed
    assert sorted(torch.cat(list(loader)).tolist()) == [0, 1, 2, 3]


def bootstrapping(device):
    guard = ""  # broken
    guard = 'if __name__ == "__main__":'  # fixed
    main = "    main()" if guard else "main()"
    lines = (
        "import multiprocessing",
        "def work(): print('works')",
        "def main():",
        "    context = multiprocessing.get_context('spawn')",
        "    process = context.Process(target=work)",
        "    process.start()",
        "    process.join()",
        *(guard, main),
    )
    Path("train.py").write_text("\n".join(lines))
    command = [sys.executable, "train.py"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if "Error" in ended.stderr:
        raise RuntimeError(ended.stderr.rpartition("RuntimeError:")[2])
    assert ended.stdout == "works\n"


def worker_pickle(device):
    dataset = [lambda: 0] * 4
    options = {"collate_fn": len, "batch_size": 2}
    options["multiprocessing_context"] = "spawn"  # broken
    loader = DataLoader(dataset, num_workers=1, **options)  # broken
    loader = DataLoader(dataset, num_workers=0, **options)  # fixed
    assert list(loader) == [2, 2]


def graph_in_worker(device):
    model = nn.Linear(3, 2)
    features = model(torch.ones(3))
    item = (features, 1)  # broken
    item = (features.detach(), 1)  # fixed
    sent = ForkingPickler.dumps(item)
    assert pickle.loads(sent)[0].tolist() == features.tolist()


def start_method(device):
    before = torch.multiprocessing.get_start_method(allow_none=True)
    torch.multiprocessing.set_start_method("fork", force=True)
    try:
        torch.multiprocessing.set_start_method("spawn")  # broken
        torch.multiprocessing.set_start_method("spawn", force=True)  # fixed
        assert torch.multiprocessing.get_start_method() == "spawn"
    finally:
        torch.multiprocessing.set_start_method(before, force=True)


def cuda_fork(device):
    class Items:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            image = torch.full((2,), float(i))
            return image.to(device)  # broken
            return image  # fixed

    torch.ones(1, device=device)
    loader = DataLoader(Items(), num_workers=1, multiprocessing_context="fork")
    with mock.patch("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.1):
        assert sum(batch.to(device).sum().item() for batch in loader) == 2


def not_torchrun(device):
    torchrun = {}  # broken
    torchrun = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": "0"}  # fixed
    torchrun["MASTER_ADDR"] = "localhost"  # fixed
    with mock.patch.dict(os.environ, torchrun):
        dist.init_process_group("gloo")
    assert dist.get_world_size() == 1


def port_in_use(device):
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]  # broken
        port = 0  # fixed
        store = dist.TCPStore("localhost", port, 1, is_master=True)
        store.set("key", "value")
        assert store.get("key") == b"value"


def ranks_do_not_meet(device):
    from datetime import timedelta

    nproc = 2  # broken
    nproc = 1  # fixed
    seconds = timedelta(seconds=1)
    store = dist.TCPStore("localhost", 0, nproc, is_master=True, timeout=seconds)
    store.set("key", "value")
    assert store.get("key") == b"value"


def group_twice(device):
    join()
    if not torch.distributed.is_initialized():  # fixed
        join()
    assert dist.get_world_size() == 1


def no_process_group(device):
    options = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    torch.distributed.init_process_group("gloo", **options)  # fixed
    model = DistributedDataParallel(nn.Linear(3, 1))
    assert model(torch.ones(2, 3)).shape == (2, 1)


def collective_on_cpu(device):
    backend = "cuda:gloo"  # broken
    backend = "cpu:gloo,cuda:gloo"  # fixed
    join(backend)
    tensor = torch.ones(2)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [1, 1]


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x):
        return self.used(x)


def unused_parameters(device):
    join()
    model = DistributedDataParallel(TwoHeads())  # broken
    model = DistributedDataParallel(TwoHeads(), find_unused_parameters=True)  # fixed
    for _ in range(2):
        model(torch.ones(2, 3)).sum().backward()
    assert model.module.used.weight.grad.tolist() == [[4, 4, 4]]


class Shared(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.use_reentrant = use_reentrant

    def forward(self, x):
        x = checkpoint(self.layer, x, use_reentrant=self.use_reentrant)
        return checkpoint(self.layer, x, use_reentrant=self.use_reentrant)


def ready_twice(device):
    join()
    model = Shared(use_reentrant=True)  # broken
    model = Shared(use_reentrant=False)  # fixed
    model = DistributedDataParallel(model, find_unused_parameters=True)
    for _ in range(2):
        model(torch.ones(2, 3, requires_grad=True)).sum().backward()
    assert model.module.layer.weight.grad is not None


def fsdp_frozen(device):
    import warnings

    from torch.distributed.fsdp import FullyShardedDataParallel

    join("cpu:gloo")
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    model[0].requires_grad_(False)
    use_orig_params = False  # broken
    use_orig_params = True  # fixed
    options = {"device_id": torch.device("cpu"), "use_orig_params": use_orig_params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a single rank shards nothing
        model = FullyShardedDataParallel(model, **options)
    model(torch.ones(2, 3)).sum().backward()
    assert len(list(model.parameters())) == 4


def fsdp_parameters(device):
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    join("cpu:gloo")
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1).bfloat16())
    model = FullyShardedDataParallel(model, device_id=torch.device("cpu"))  # broken
    model = model.float()  # fixed
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))  # fixed
    fully_shard(model, mesh=mesh)  # fixed
    assert model(torch.ones(2, 3)).shape == (2, 1)
    assert len(list(model.parameters())) == 4


def ddp_no_parameters(device):
    join()
    head = nn.Linear(2, 1).requires_grad_(False)
    head.requires_grad_(True)  # fixed
    model = DistributedDataParallel(head)
    model(torch.ones(1, 2)).sum().backward()
    assert head.weight.grad is not None


def wrapped_attribute(device):
    class Net(nn.Linear):
        def encode(self, x):
            return self(x)

    join()
    model = DistributedDataParallel(Net(2, 1))
    inner = model  # broken
    inner = model.module if hasattr(model, "module") else model  # fixed
    assert inner.encode(torch.ones(1, 2)).shape == (1, 1)


def bucket_strides(device):
    class Pointwise(nn.Conv2d):
        def forward(self, x):  # a 1x1 convolution of channels that come last
            return x @ self.weight.permute(0, 2, 3, 1).flatten(1).mT + self.bias

    join()
    model = Pointwise(4, 8, 1)
    model = model.to(memory_format=torch.channels_last)  # fixed
    model = DistributedDataParallel(model)
    torch.set_warn_always(True)  # torch says it only once in a process
    model(torch.ones(2, 3, 3, 4)).sum().backward()
    torch.set_warn_always(False)
    assert model.module.weight.grad.shape == (8, 4, 1, 1)


def mixed_dtensor(device):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    join("cpu:gloo")
    mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
    weight = distribute_tensor(torch.ones(2, 2), mesh, [Shard(0)])
    other = torch.ones(2, 2)
    other = distribute_tensor(other, mesh, [Replicate()])  # fixed
    product = torch.mm(weight, other)
    assert product.full_tensor().tolist() == [[2, 2], [2, 2]]


def iterable_length(device):
    class IterableDataset(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(100))

    loader = DataLoader(IterableDataset(), batch_size=4)
    steps = len(loader)  # broken
    steps = 10  # fixed
    taken = [batch for step, batch in zip(range(steps), loader, strict=False)]
    assert len(taken) == steps
