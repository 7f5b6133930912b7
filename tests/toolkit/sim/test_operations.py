import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from core import models
from to_device.sim import ledger, operations

GRID = torch.arange(12.0).view(3, 4)
pytestmark = pytest.mark.usefixtures("one_thread")


def trained(name: str, device: str, steps: int = 5) -> list[Tensor]:
    """The losses of some steps and the parameters after them, on the host."""
    torch.manual_seed(0)
    model, dice = models.build(name), torch.Generator().manual_seed(1)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    model.to(device)
    losses = []
    for _ in range(steps):
        images = torch.rand(16, 1, 28, 28, generator=dice)
        labels = torch.randint(10, (16,), generator=dice)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [tensor.cpu() for tensor in (*losses, *model.parameters())]


@pytest.mark.parametrize("name", ["ann", "cnn"])
def test_training_ends_in_the_digits_of_the_cpu(name: str) -> None:
    pairs = zip(trained(name, "cpu"), trained(name, "sim"), strict=True)
    assert all(torch.equal(here, there) for here, there in pairs)


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "conv1d in groups": (lambda: nn.Conv1d(4, 4, 3, groups=4), (2, 4, 9)),
    "transposed": (lambda: nn.ConvTranspose2d(3, 2, 3), (2, 3, 5, 5)),
    "layer norm": (lambda: nn.LayerNorm(4), (5, 4)),
    "lstm": (lambda: nn.LSTM(4, 3, num_layers=2), (6, 2, 4)),
    "lstm without bias": (lambda: nn.LSTM(4, 3, bias=False), (6, 2, 4)),
    "gru": (lambda: nn.GRU(4, 3), (6, 2, 4)),
    "attention": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True),
        (2, 5, 4),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_cpus_outputs_and_gradients(name: str) -> None:
    make, shape = LAYERS[name]

    def tried(device: str) -> list[Tensor]:
        torch.manual_seed(0)
        layer, inputs = make(), torch.rand(shape)
        inputs = inputs.to(device).requires_grad_()
        outputs = layer.to(device)(inputs)
        outputs = outputs[0] if isinstance(outputs, tuple) else outputs
        outputs.square().sum().backward()
        grads = [parameter.grad for parameter in layer.parameters()]
        return [tensor.cpu() for tensor in (outputs.detach(), inputs.grad, *grads)]

    for here, there in zip(tried("cpu"), tried("sim"), strict=True):
        torch.testing.assert_close(there, here)


@pytest.mark.parametrize("options", [{}, {"activation": "gelu", "norm_first": True}])
def test_a_transformer_in_evaluation_gives_the_cpus_outputs(options: dict) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    there, x = copy.deepcopy(encoder).to("sim"), torch.rand(3, 5, 8)
    padded = torch.arange(5) >= torch.tensor([[5], [2], [4]])
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    with torch.no_grad():
        for masks in ({}, {"mask": later}, {"src_key_padding_mask": padded}):
            moved = {name: mask.to("sim") for name, mask in masks.items()}
            output = there(x.to("sim"), **moved).cpu()
            rows = ~masks.get("src_key_padding_mask", torch.zeros(3, 5).bool())
            torch.testing.assert_close(output[rows], encoder(x, **masks)[rows])
        heads, heads_there = layer.self_attn.eval(), there.layers[0].self_attn
        for average in (True, False):
            options = {"key_padding_mask": padded, "average_attn_weights": average}
            outputs = heads(x, x, x, **options)
            options["key_padding_mask"] = padded.to("sim")
            y = x.to("sim")
            others = heads_there(y, y, y, **options)
            for here, other in zip(outputs, others, strict=True):
                torch.testing.assert_close(other.cpu(), here)


def changed_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[0].mul_(10)
    y.t()[1].add_(1)
    y[y > 50] = 0
    return y


def written_into(x: Tensor) -> Tensor:
    return torch.add(x, x, out=torch.empty(0, device=x.device))


def mapped(x: Tensor) -> Tensor:
    return torch.vmap(torch.func.grad(lambda row: (row**3).sum()))(x)


def derived_forward(x: Tensor) -> Tensor:
    return torch.func.jvp(lambda row: x @ row.tanh(), (x[0],), (x[1],))[1]


def twice_derived(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad(first.square().sum(), x)[0]


EXPRESSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "views": lambda x: x.t()[1:3, ::2].reshape(-1),
    "in place": changed_in_place,
    "out=": written_into,
    "another dtype": lambda x: x.to(torch.bfloat16) @ x.to(torch.bfloat16).t(),
    "the bits": lambda x: x.view(torch.int32),
    "8 bits": lambda x: x.to(torch.float8_e4m3fn).float(),
    "complex": lambda x: torch.fft.fft(x).abs(),
    "sorted": lambda x: x.sort(descending=True).values,
    "indexed by the host": lambda x: x[torch.tensor([2, 0])],
    "masked": lambda x: x[x > 5],
    "a number of the host": lambda x: x * torch.tensor(2.0),
    "numbers": lambda x: (x % 3) + x.long() % 2 + x.fmod(2) + x // 2 + 5 % (x + 1),
    "set from the host": lambda x: x.clone().index_fill_(0, x[0, :1].long(), 7.0),
    "resized": lambda x: x.clone().resize_(2, 3),
    "channels last": lambda x: x.view(1, 3, 2, 2).to(memory_format=torch.channels_last),
    "gradients of each row": mapped,
    "second derivatives": twice_derived,
    "forward derivatives": derived_forward,
    "copied deeply": copy.deepcopy,
    "pickled": lambda x: pickle.loads(pickle.dumps(x)),
    "one hot": lambda x: F.one_hot(x.long()),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_give_what_the_cpu_gives(name: str) -> None:
    there = EXPRESSIONS[name](GRID.to("sim"))
    assert there.device == torch.device("sim", 0)
    assert type(there) is Tensor
    assert torch.equal(there.cpu(), EXPRESSIONS[name](GRID))
    assert "device='sim:0'" in repr(there)


def test_a_view_is_of_the_same_memory() -> None:
    x = torch.zeros(2, 3, device="sim")
    x.view(-1)[4] = 5
    assert x.untyped_storage().data_ptr() == x[1].untyped_storage().data_ptr()
    assert x.cpu().tolist() == [[0, 0, 0], [0, 5, 0]]


def test_the_optimizer_made_before_the_move_trains_what_was_moved() -> None:
    layer = nn.Linear(3, 2)
    parameters, optimizer = (
        list(layer.parameters()),
        torch.optim.SGD(layer.parameters(), lr=1.0),
    )
    layer.to("sim")
    assert all(a is b for a, b in zip(parameters, layer.parameters(), strict=True))
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 3, device="sim")).sum().backward()
    optimizer.step()
    assert (before - layer.weight).abs().min() == 1


def test_data_moves_while_a_graph_waits_for_its_backward_pass() -> None:
    layer = nn.Linear(3, 2).to("sim")
    loss = layer(torch.ones(1, 3, device="sim")).sum()
    layer.cpu()
    assert layer.weight.is_cpu
    layer.weight.data = torch.ones(2, 3, device="sim")
    loss.backward()
    assert layer.weight.grad.tolist() == layer.weight.tolist()


@pytest.mark.parametrize(
    ("size", "pinned", "non_blocking", "waits"),
    [
        (6, False, False, 1),
        (6, False, True, 0),
        (2**14, False, True, 0),
        (2**14 + 1, False, True, 1),
        (2**15, True, False, 1),
        (2**15, True, True, 0),
    ],
)
def test_the_host_waits_for_copies(
    size: int, pinned: bool, non_blocking: bool, waits: int
) -> None:
    numbers = torch.arange(float(size))
    host = numbers.pin_memory() if pinned else numbers
    assert host.is_pinned() == pinned
    with ledger.counting() as counts:
        moved = host.to("sim", non_blocking=non_blocking)
    assert sum(counts.waits.values()) == waits
    assert ledger.total(counts.copied, ledger.TO_DEVICE) == numbers.nbytes
    with ledger.counting() as counts:
        back = moved.to("cpu", non_blocking=non_blocking)
    assert sum(counts.waits.values()) == (not non_blocking)
    assert back.is_pinned() == non_blocking
    assert torch.equal(back, numbers)
    whole = moved.to("cpu", torch.int64, non_blocking=True)
    assert torch.equal(whole, numbers.long())


def test_a_loader_pins_and_works_in_processes() -> None:
    data = TensorDataset(torch.arange(8.0))
    for options in ({}, {"pin_memory": True}, {"num_workers": 1}):
        batches = [batch.to("sim") for (batch,) in DataLoader(data, 4, **options)]
        assert torch.cat(batches).tolist() == list(range(8))


def test_files_remember_the_device(tmp_path) -> None:
    file = tmp_path / "x.pt"
    for here, there in (("sim", None), ("sim", "cpu"), ("cpu", "sim")):
        torch.save(GRID.to(here), file)
        loaded = torch.load(file, map_location=there)
        assert loaded.device.type == (there or here)
        assert torch.equal(loaded.cpu(), GRID)


def test_what_is_conjugated_or_negated_later_gives_the_cpus_numbers() -> None:
    host = torch.complex(torch.rand(3, 3), torch.rand(3, 3))
    x = host.to("sim")
    assert torch.equal((x.conj() * x).cpu(), host.conj() * host)
    assert torch.equal((x.mH @ x).cpu(), host.mH @ host)
    assert torch.equal(x.conj().imag.cpu(), host.conj().imag)
    solution = torch.linalg.solve(x, x.mH, left=False)  # the CPU's kernel conjugates it
    assert torch.equal(solution.cpu(), torch.linalg.solve(host, host.mH, left=False))
    written = torch.zeros_like(x)
    written.conj().copy_(x)
    assert torch.equal(written.cpu(), host.conj().resolve_conj())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_are_in_16_bits_and_losses_in_32(dtype: torch.dtype) -> None:
    layer, inputs = nn.Linear(4, 3).to("sim"), torch.rand(5, 4, device="sim")
    with torch.autocast("sim", dtype=dtype):
        outputs = layer(inputs)
        loss = nn.functional.cross_entropy(outputs, torch.zeros(5, 3, device="sim"))
    loss.backward()
    assert (outputs.dtype, loss.dtype) == (dtype, torch.float32)
    assert layer.weight.grad.dtype == torch.float32


HALF = GRID.half()
AUTOCAST: dict[str, Callable[[Callable], Tensor]] = {  # measured on an H100
    "16 einsum": lambda there: torch.einsum("ij,kj->ik", there(GRID), there(GRID)),
    "half mean": lambda there: there(HALF).mean(),
    "half gelu": lambda there: F.gelu(there(HALF)),
    "16 transposed": lambda there: F.conv_transpose1d(
        there(GRID[None]), there(torch.ones(3, 2, 1))
    ),
    "16 cell": lambda there: nn.LSTMCell(4, 2).to("sim")(there(GRID))[0],
    "half lstm": lambda there: nn.LSTM(4, 2).to("sim")(there(GRID))[0],
    "half gru": lambda there: nn.GRU(4, 2).to("sim")(there(GRID))[0],
    "32 norm": lambda there: there(HALF).norm(),
    "32 normalize": lambda there: F.normalize(there(HALF)),
    "32 exp": lambda there: there(HALF).exp(),
    "32 huber": lambda there: F.huber_loss(there(HALF), there(HALF)),
    "32 dot": lambda there: torch.dot(there(GRID[0]), there(HALF[0])),
    "32 put": lambda there: there(GRID).index_put(
        (there(torch.tensor([0])),), there(HALF[0])
    ),
    "64 product": lambda there: there(GRID.double()) @ there(GRID.double().T),
}


@pytest.mark.parametrize("name", AUTOCAST)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_has_the_lists_of_cuda(name: str, dtype: torch.dtype) -> None:
    kinds = {"16": dtype, "half": torch.float16, "32": torch.float32}
    with torch.autocast("sim", dtype=dtype):
        result = AUTOCAST[name](lambda x: x.to("sim"))
    assert result.dtype == kinds.get(name.split()[0], torch.float64)


def test_autocast_of_the_cpu_changes_nothing_on_the_device() -> None:
    x = GRID.to("sim")
    with torch.autocast("cpu"):
        assert (x @ x.T).dtype == torch.float32
        assert (GRID @ GRID.T).dtype == torch.bfloat16


def test_autocast_refuses_the_loss_that_needs_a_sigmoid_before() -> None:
    x = torch.rand(3, device="sim")
    with torch.autocast("sim"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x, x)
    assert F.binary_cross_entropy(x, x).dtype == torch.float32


def test_a_scaler_scales() -> None:
    layer, scaler = nn.Linear(4, 1).to("sim"), torch.amp.GradScaler("sim")
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    scaler.scale(layer(torch.ones(2, 4, device="sim")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, layer.weight)


def version_after(op: Any, device: str) -> int:
    """How often a tensor was written to, as autograd sees it, after a foreach call."""
    tensor = torch.ones(2, device=device)
    of_type = {
        "List[Tensor]": [torch.ones(2, device=device)],
        "Tensor": torch.ones([1] * ("addc" in op.name()), device=device),
        "List[number]": [2.0],
        "number": 2.0,
    }
    rest = [
        argument for argument in op._schema.arguments[1:] if not argument.kwarg_only
    ]
    before = tensor._version
    op([tensor], *(of_type.get(str(argument.type), False) for argument in rest))
    return tensor._version - before


def test_operations_in_place_on_lists_count_versions() -> None:
    in_place = [
        op
        for op in operations.WHOLE
        if op.name().startswith("aten::_foreach_") and op._schema.name.endswith("_")
    ]
    assert len(in_place) > 50
    for op in in_place:
        assert version_after(op, "sim") == version_after(op, "cpu") == 1, op


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}, {}])
def test_a_step_between_two_uses_of_a_graph_is_seen(options: dict) -> None:
    """Autograd refuses the second use, unless the step was a fused one."""
    for device in ("cpu", "sim"):
        layer = nn.Linear(2, 2, device=device)
        optimizer = torch.optim.Adam(layer.parameters(), **options)
        loss = layer(torch.ones(1, 2, device=device, requires_grad=True)).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        if "fused" in options:
            loss.backward()
        else:
            with pytest.raises(RuntimeError, match="modified by an inplace"):
                loss.backward()
