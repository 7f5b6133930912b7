import multiprocessing
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.process import python

HOST = torch.rand(4, 3)
THERE = HOST.to("sim")
LABELS = torch.tensor([0, 1, 2, 0])

BOTH = "found at least two devices, sim:0 and cpu!"
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a sum": (lambda: THERE + HOST, BOTH),
    "a sum, the other way": (lambda: HOST + THERE, BOTH),
    "in place": (lambda: THERE.clone().add_(HOST), BOTH),
    "where": (lambda: torch.where(THERE > 0, THERE, HOST), BOTH),
    "a product": (
        lambda: THERE @ HOST.t(),
        "got mat2 is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM_mm)",
    ),
    "a batch that was not moved": (
        lambda: nn.Linear(3, 2).to("sim")(HOST),
        "got mat1 is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM_addmm)",
    ),
    "labels that were not moved": (
        lambda: F.cross_entropy(THERE, LABELS),
        "got target is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM_nll_loss_forward)",
    ),
    "an embedding": (
        lambda: nn.Embedding(4, 2).to("sim")(LABELS),
        "wrapper_SIM__index_select",
    ),
    "joined": (lambda: torch.cat([THERE, HOST]), "wrapper_SIM_cat"),
    "an image for a convolution": (
        lambda: nn.Conv2d(1, 16, 3).to("sim")(torch.rand(64, 1, 28, 28)),
        "Input type (torch.FloatTensor) and weight type (simFloatType)",
    ),
    "weights for an image": (
        lambda: F.conv2d(torch.rand(1, 1, 4, 4, device="sim"), torch.rand(1, 1, 3, 3)),
        "Input type (torch.sim.FloatTensor) and weight type (torch.FloatTensor)",
    ),
    "a bias": (
        lambda: F.layer_norm(THERE, (3,), THERE[0], HOST[0]),
        "got bias is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM__native_layer_norm)",
    ),
    "a weight to train": (
        lambda: F.batch_norm(THERE, None, None, HOST[0], THERE[0], training=True),
        "got weight is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM__cudnn_batch_norm)",
    ),
    "a vector": (lambda: THERE @ HOST[0], "wrapper_SIM_addmv_)"),
    "a limit": (
        lambda: THERE.clamp(min=torch.tensor(0.0)),
        "got min is on cpu, different from other tensors on sim:0 (when checking "
        "argument in method wrapper_SIM_clamp_Tensor)",
    ),
    "a comparison": (lambda: torch.equal(THERE, HOST), "wrapper_SIM__equal)"),
    "a result on the host": (
        lambda: torch.mm(THERE.t(), THERE, out=torch.empty(3, 3)),
        "got self is on sim:0, different from other tensors on cpu (when checking "
        "argument in method wrapper_SIM_mm_out_out)",
    ),
    "a number on the host, in place": (
        lambda: torch.tensor(2.0).mul_(THERE.sum()),
        BOTH,
    ),
    "a mask": (
        lambda: THERE.masked_fill(HOST > 0, 0.0),
        "expected self and mask to be on the same device, but got mask on cpu",
    ),
    "places in a tensor of the host": (
        lambda: HOST[torch.zeros(1, dtype=torch.long, device="sim")],
        "indices should be either on cpu or on the same device as the indexed",
    ),
    "values for places": (
        lambda: THERE.index_put_((torch.tensor([0]),), torch.rand(1, HOST.shape[1])),
        "found at least two devices, sim:0 and cpu!",
    ),
    "a state on the host": (
        lambda: nn.LSTM(3, 2).to("sim")(THERE, (torch.zeros(1, 2), torch.zeros(1, 2))),
        "hidden tensor at cpu",
    ),
    "a generator of the host": (
        lambda: torch.rand(2, device="sim", generator=torch.Generator()),
        "Expected a 'sim' device type for generator but found 'cpu'",
    ),
    "numpy": (THERE.numpy, "can't convert sim:0 device type tensor to numpy"),
    "a second device": (
        lambda: HOST.to("sim:1"),
        "SIM error: invalid device ordinal\n"
        "GPU device may be out of range, do you have enough GPUs?",
    ),
    "a second device, chosen": (
        lambda: torch.accelerator.set_device_index(1),
        "SIM error: invalid device ordinal",
    ),
    "pinned on the device": (THERE.pin_memory, "only dense CPU tensors can be pinned"),
    "made and pinned on the device": (
        lambda: torch.zeros(2, device="sim", pin_memory=True),
        "Only dense CPU tensors can be pinned",
    ),
    "a product of two precisions": (
        lambda: F.linear(THERE.double(), THERE),
        "expected mat1 and mat2 to have the same dtype, but got: double != float",
    ),
    "a product of integers in the wrong shapes": (
        lambda: THERE.int() @ THERE.int(),
        "mat1 and mat2 shapes cannot be multiplied (4x3 and 4x3)",
    ),
    "a product of integers": (
        lambda: THERE.int() @ THERE.int().t(),
        "\"addmm_cuda\" not implemented for 'Int'",
    ),
    "products of integers": (
        lambda: torch.bmm(*[torch.ones(1, 2, 2, dtype=torch.long, device="sim")] * 2),
        "\"baddbmm_cuda\" not implemented for 'Long'",
    ),
    "a size beyond all counting": (
        lambda: torch.empty(2**40, 2**40, device="sim"),
        "Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    action, words = REFUSED[name]
    with pytest.raises((RuntimeError, TypeError)) as caught:
        action()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("optimizer", "options", "words"),
    [
        (torch.optim.SGD, {"momentum": 0.9}, "found at least two devices"),
        (
            torch.optim.Adam,
            {"fused": True},
            "got exp_avgs is on cpu, different from other tensors on sim:0 .* in "
            "method wrapper_SIM___fused_adam_",
        ),
    ],
)
def test_an_optimizers_state_stays_where_it_was_made(optimizer, options, words) -> None:
    layer = nn.Linear(3, 2)
    optimizer = optimizer(layer.parameters(), lr=0.1, **options)
    layer(HOST).sum().backward()
    optimizer.step()
    layer.to("sim")
    layer(THERE).sum().backward()
    with pytest.raises(RuntimeError, match=words):
        optimizer.step()


MIXED: dict[str, Callable[[], Tensor]] = {
    "a number": lambda: THERE * torch.tensor(2.0),
    "an index": lambda: THERE[LABELS],
    "a mask": lambda: THERE[HOST > 0.5],
    "a copy": lambda: torch.empty_like(THERE).copy_(HOST),
    "an assignment": lambda: THERE.clone().index_put_((LABELS,), THERE[0]),
    "chances": lambda: torch.bernoulli(HOST, out=torch.empty_like(THERE)),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_may_mix(name: str) -> None:
    assert MIXED[name]().device.type == "sim"


WRITTEN: dict[str, Callable[[Tensor], object]] = {
    "at a mask": lambda host: host.__setitem__(THERE > 1, 0.0),
    "at a mask, a number": lambda host: host.__setitem__(THERE < 1, THERE.new_ones(())),
    "at an index": lambda host: host.__setitem__(LABELS.to("sim"), 1.0),
    "filled": lambda host: host.fill_(THERE.new_ones(())),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_device_may_say_where_the_host_is_written(name: str) -> None:
    host = torch.ones(4, 3)
    WRITTEN[name](host)
    assert torch.equal(host, torch.ones(4, 3))


def in_a_fork(pipe) -> None:
    try:
        torch.zeros(1, device="sim")
    except RuntimeError as error:
        pipe.send(str(error))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="nothing forks here"
)
def test_a_fork_has_no_device() -> None:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=in_a_fork, args=(theirs,))
    child.start()
    message = ours.recv() if ours.poll(60) else "nothing"
    child.join(60)
    assert "Cannot re-initialize SIM in forked subprocess" in message


def test_a_file_of_the_device_needs_it(tmp_path) -> None:
    file = tmp_path / "x.pt"
    torch.save(THERE, file)
    script = f"import torch; torch.load({str(file)!r})"
    errors = python("-c", script, status=1).stderr
    assert "don't know how to restore data location" in errors
    assert "tagged with sim:0" in errors
