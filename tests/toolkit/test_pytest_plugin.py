"""The plugin in pytest processes of their own, since the device never leaves one."""

import dataclasses
import json

import pytest

from tests.process import ROOT, python
from to_device.dryrun.report import Request

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(600)

LIBRARY = """
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(2, 2)
        self.shift = torch.ones(2)

    def forward(self, x):
        return self.scale(x) + self.shift

def noise(x):
    return x + torch.zeros(2)

class Kept(nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.register_buffer("kept", torch.ones(2, device=device))

    def to(self, *places):
        return super().to(*places)

    def forward(self, x):
        return x + self.kept

def scaled(x, weights):
    twice = weights * 2
    return x * twice

class Batch:
    def __init__(self, x):
        self.x = x

    def to(self, device):
        [x] = [x.to(device) for x in [self.x]]
        return Batch(x)
"""
TESTS = """
import pytest
import torch
from library import Shift, noise

@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("device", ["cpu", "cuda"][: 1 + torch.cuda.device_count()])
def test_right(device):
    x = torch.ones(2, device=device)
    assert (x + 1).sum().item() == 4

@pytest.fixture(scope="module")
def model():
    return Shift().cuda()

def test_forgotten(model):
    model(torch.ones(3, 2, device="cuda"))

def test_second_gpu():
    torch.ones(2, device="cuda:1")

def test_compiled():
    assert hasattr(torch.compile(torch.nn.Linear(1, 1)), "dynamo_ctx")

def test_ordinary():
    assert 1 == 2
"""

TESTS_FOR_CPU = """
import numpy as np
import pytest
import torch
from torch import nn
from library import Batch, Kept, Shift, noise, scaled
from tests.helpers import data

def test_model_is_used_before_its_call():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    before = [p.clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    assert all(p.is_cuda for p in before)
    np.testing.assert_allclose(before[0].detach().numpy(), before[0].detach().cpu())

def test_numbers_are_those_of_the_cpu():
    torch.manual_seed(0)
    drawn = torch.rand(2)
    torch.manual_seed(0)
    assert drawn.is_cuda and torch.equal(drawn, torch.rand(2))
    torch.manual_seed(0)
    assert nn.Linear(2, 2).weight.is_cuda
    assert not torch.equal(drawn, torch.rand(2))

def test_old_classes_make_tensors_on_the_device():
    for kind in torch.Tensor, torch.FloatTensor, torch.LongTensor:
        x = kind([1, 2])
        assert x.is_cuda and isinstance(x.cpu(), kind)
    assert x.type(torch.FloatTensor).is_cpu and x.type(torch.Tensor).is_cpu
    assert nn.Parameter(torch.Tensor(2)).is_leaf

def test_a_test_that_names_the_cpu():
    made = torch.zeros(2, device="cpu")
    for moved in torch.ones(2).to("cpu"), torch.ones(2).to(device=torch.device("cpu")):
        assert (made + moved).is_cuda
    for model in nn.Linear(2, 2).to("cpu"), Kept().to("cpu"):
        assert model(made).is_cuda
    assert (Batch(made).to("cpu").x + torch.ones(2)).is_cuda
    assert np.array_equal(made.to("cpu"), np.zeros(2))
    pack = nn.utils.rnn.pack_padded_sequence
    assert pack(torch.zeros(2, 2), torch.tensor([2, 1])).is_cuda
    lstm = nn.LSTM(2, 2).cpu()
    output, _ = lstm(torch.zeros(1, 2).cpu())
    assert output.is_cpu

@pytest.fixture(params=["cpu"])
def place(request):
    return request.param

@pytest.mark.parametrize("device", [torch.device("cpu")])
def test_devices_that_a_test_names(place, device):
    assert torch.device(place) == device
    assert (Kept(device)(torch.ones(2, device=place)) + torch.ones(2)).is_cuda

@pytest.mark.parametrize(("source", "target"), [("cpu", "cuda")])
def test_two_devices_that_a_test_names(source, target):
    assert source != target

def test_helpers_are_a_part_of_the_tests():
    assert data().is_cuda and torch.Tensor(2).is_cuda

def test_library_forgets():
    noise(torch.ones(2))

def test_attribute_is_forgotten():
    Shift()(torch.ones(2))

def test_only_one_is_copied():
    weights = torch.ones(2).cpu()
    scaled(torch.ones(2), weights)
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs pytest with the plugin, and returns its result."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{pytester.path}")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(library=LIBRARY)

    def run(tests: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=tests)
        plugin = "-p", "to_device.pytest_plugin", "-p", "no:cacheprovider"
        return pytester.runpytest_subprocess(*plugin, "-rs", *options)

    return run


def test_a_suite_on_the_device(run) -> None:
    result = run(TESTS, "--dry-cuda", "--dry-cuda-report")
    result.assert_outcomes(passed=2, failed=2, skipped=2)
    text = result.stdout.str()
    on_cuda, _, summary = text.partition("- on CUDA -")[2].partition("simulated CUDA")
    assert "Expected all tensors to be on the same device" in on_cuda
    assert "library.py:8  self.shift = torch.ones(2)" in on_cuda  # what has to change
    assert "2 of 6 tests" in summary or "3 of 6 tests" in summary
    assert "torch.compile" in summary
    assert "a second GPU, cuda:1" in summary
    assert "library.py:8 (1 test)" in summary
    at = TESTS.splitlines().index("    assert (x + 1).sum().item() == 4")
    right = next(line for line in summary.splitlines() if "right[cuda]" in line)
    assert right.startswith("1 waits")
    assert f"test_it.py:{at}" in right
    # Two parameters move. Pytest reads the tensors to show them, and the test doesn't.
    forgotten = next(line for line in summary.splitlines() if "forgotten" in line)
    assert forgotten.startswith("2 waits")
    assert "2 copies" in forgotten


@pytest.mark.slow
def test_single_tests_have_the_device_without_the_option(run) -> None:
    tests = """
import pytest, torch
@pytest.mark.dry_cuda
def test_marked():
    assert torch.zeros(1).cuda().is_cuda
    assert torch.cuda.mem_get_info()[1] == 2**30
def test_counting(dry_cuda):
    torch.ones(2, device="cuda").sum().item()
    [event] = dry_cuda.waits
    assert event.file == __file__ and dry_cuda.waits[event] == 1
@pytest.mark.dry_cuda
def test_wrong():
    torch.zeros(2).cuda() + torch.zeros(2)
def test_other():
    assert not torch.cuda.is_available()
"""
    run(tests, "--dry-cuda-memory=1GiB").assert_outcomes(passed=3, failed=1)
    assert (
        run(tests, "--dry-cuda", "--dry-cuda-memory=1XB").ret
        == pytest.ExitCode.USAGE_ERROR
    )


@pytest.mark.slow
def test_tests_for_the_cpu_move_what_they_make(run, pytester) -> None:
    pytester.mkpydir("tests").joinpath("helpers.py").write_text(
        "import torch\ndef data():\n    return torch.zeros(2)\n", "utf-8"
    )
    result = run(TESTS_FOR_CPU, "--dry-cuda-move")
    result.assert_outcomes(passed=7, failed=3)
    summary = result.stdout.str().partition("simulated CUDA device")[2]
    at = TESTS_FOR_CPU.splitlines().index("    weights = torch.ones(2).cpu()")
    for line in "library.py:14", "library.py:8", f"test_it.py:{at}":
        assert f"{line} (1 test)" in summary


@pytest.mark.slow
def test_processes_of_xdist(run) -> None:
    result = run(TESTS, "--dry-cuda", "-p", "xdist", "-n", "1")
    result.assert_outcomes(passed=2, failed=2, skipped=2)
    summary = result.stdout.str().partition("simulated CUDA device")[2]
    assert "a second GPU" in summary
    assert "library.py:8 (1 test)" in summary


@pytest.mark.slow
def test_a_real_gpu_is_left_alone(run, pytester: pytest.Pytester) -> None:
    """As far as this can be seen: torch says that it has one."""
    pytester.makepyfile(
        real_gpu="""
import torch
torch.accelerator.is_available = lambda: True
torch.accelerator.current_accelerator = lambda: torch.device("cuda")
"""
    )
    tests = "import sys\ndef test_it(dry_cuda):\n    assert dry_cuda is None"
    result = run(tests, "-p", "real_gpu", "--dry-cuda")
    result.assert_outcomes(passed=1)
    assert "--dry-cuda steps aside" in result.stdout.str()


def test_an_old_torch_is_a_sentence(run, pytester: pytest.Pytester) -> None:
    """Said by the command, too. Neither imports what an old torch may lack."""
    pytester.makepyfile(
        old_torch="""
import sys, torch, torch._dynamo
torch.__version__ = "2.5.1"
del torch.accelerator
sys.modules["to_device.dryrun.cuda"] = None  # to import it raises an error
"""
    )
    sentence = "needs torch 2.10 or later, but this is torch 2.5.1"
    result = run("", "-p", "old_torch", "--dry-cuda")
    assert sentence in result.stderr.str()
    child = "import old_torch, to_device.dryrun.child as child\nchild.main()"
    request = json.dumps(dataclasses.asdict(Request("script.py", ""))).encode()
    assert sentence in python("-c", child, input=request).stdout


def test_a_run_without_the_option_does_not_import_torch() -> None:
    script = """
import sys, pytest
status = pytest.main(["-p", "to_device.pytest_plugin", "--version"])
sys.exit(status or "torch" in sys.modules or "to_device.dryrun" in sys.modules)
"""
    python("-c", script)
