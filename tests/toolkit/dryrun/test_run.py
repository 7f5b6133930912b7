import json
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun import command
from to_device.dryrun.report import (
    DEVICE_ERROR,
    NOT_SIMULATED,
    NOTHING_ON_CUDA,
    OK,
    SCRIPT_ERROR,
    Report,
    Request,
    terminal_lines,
)
from to_device.dryrun.script import Progress, Script

TRAINING = """
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
total = 0.0
for epoch in range(1_000_000):
    images, labels = torch.rand(64, 784), torch.randint(0, 10, (64,))
    outputs = model(images.to(device))
    loss = criterion(outputs, labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {line}
{after}
"""
FLOAT = 4  # bytes
FOLDER = Path(__file__).with_name("scripts")
EXPECTED = tomllib.loads((FOLDER / "expected.toml").read_text("utf-8"))
pytestmark = pytest.mark.usefixtures("unhurried")


def training(line: str = "pass", after: str = "", **options) -> Report:
    return dry_run(TRAINING.format(line=line, after=after), **options)


def test_a_right_script() -> None:
    report = training()
    assert report.status == OK
    assert report.steps >= 3
    assert (report.failure, report.growth, report.on_cpu) == (None, None, None)


def test_the_steps_of_one_optimizer_after_another() -> None:
    report = dry_run("""
        import torch
        net = torch.nn.Linear(2, 2).cuda()
        for task in range(3):
            optimizer = torch.optim.SGD(net.parameters())
            for _ in range(4):
                net(torch.ones(1, 2).cuda()).sum().backward()
                optimizer.step()
    """)
    assert report.steps == 3 * 4


def test_what_comes_after_a_long_loop_is_run() -> None:
    report = training(after="print(epoch == 999_999)\nmodel(torch.rand(1, 784))")
    assert report.status == DEVICE_ERROR
    assert report.failure
    assert report.failure.line
    assert report.failure.line.number == 19


@pytest.mark.slow
def test_a_long_evaluation_ends_before_the_time_limit() -> None:
    evaluation = """
    for split in "train", "test":
        for number in range(1_000_000):
            with torch.inference_mode():
                model(torch.rand(64, 784).to(device))
        print(split, number)
    model(torch.rand(1, 784))"""
    report = training(after=dedent(evaluation), seconds=120)
    assert report.status == DEVICE_ERROR
    assert report.failure
    assert report.failure.line
    assert report.failure.line.number == 24
    assert "line 10, line 20" in report.notes[0]


def test_a_training_that_forgets_its_step_ends_before_the_time_limit() -> None:
    script = TRAINING.format(line="pass", after="")
    report = dry_run(script.replace("optimizer.step()", "pass"), seconds=120)
    assert (report.status, report.steps) == (OK, 0)


def test_a_script_that_needs_a_loop_whole_gets_the_verdict_of_the_whole_loop() -> None:
    """As a script that draws its losses, of which the loop left some out."""
    text = """
        import torch
        net = torch.nn.Linear(512, 512).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for batch in [torch.rand(4096, 512)] * 40:
            optimizer.zero_grad()
            loss = net(batch.cuda()).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        losses[39]
    """
    report = dry_run(text)
    assert (report.status, report.fails_after_loop) == (NOT_SIMULATED, True)
    assert dry_run(text, shortens=False).status == OK


def test_a_model_whose_parameters_are_in_a_list_ends_its_loop() -> None:
    """As in meta-learning, where no layer is called."""
    report = dry_run(
        """
        import torch
        from torch import nn

        class Learner(nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = nn.ParameterList([torch.ones(512, 8)])

            def forward(self, x):
                return x @ self.weights[0]

        net, batch = Learner().cuda(), torch.ones(16384, 512)
        with torch.no_grad():
            for number in range(1_000_000):
                net(batch.cuda())
        assert number == 999_999
    """,
        seconds=120,
    )
    assert report.status == OK


@pytest.mark.slow
def test_loops_that_never_end_early() -> None:
    """Those over a model's layers, and a generator's, however much work they are."""
    report = dry_run(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.PReLU() for _ in range(40))
                self.all = 0

            def parameters(self):
                return [layer.weight for layer in self.layers]

            def forward(self, x):
                for number, layer in enumerate(self.layers):
                    x = layer(x)
                self.all = number
                return x

        def forever(items):
            while True:
                yield from iter(items)

        net, batches = Net().cuda(), forever([torch.ones(4096, 4096)])
        with torch.inference_mode():
            for _ in range(2):
                net(next(batches).cuda())
        assert net.all == 39
    """
    )
    assert report.status == OK


def test_a_librarys_loop_ends_if_it_trains(tmp_path: Path) -> None:
    (tmp_path / "fitting.py").write_text(
        dedent(
            """
            def fit(net, optimizer, batches):
                for batch in batches:
                    optimizer.zero_grad()
                    net(batch.cuda()).mean().backward()
                    optimizer.step()
            """
        )
    )
    report = dry_run(
        f"""
        import sys, torch
        sys.path.append({str(tmp_path)!r})
        from fitting import fit
        net = torch.nn.Linear(8, 2).cuda()
        fit(net, torch.optim.SGD(net.parameters()), [torch.ones(1, 8)] * 1_000_000)
    """
    )
    assert report.status == OK
    assert 3 < report.steps < 1_000_000


def test_the_only_rank_of_a_world_of_one() -> None:
    report = dry_run(
        """
        import os, torch
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel

        dist.init_process_group("nccl")
        rank = int(os.environ["LOCAL_RANK"])
        net = torch.nn.Linear(4, 2).to(rank)
        net = DistributedDataParallel(net, device_ids=[rank])
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.rand(8, 4).to(rank)).sum().backward()
            optimizer.step()
        ones, all = torch.ones(2).cuda(), [torch.zeros(2).cuda()]
        dist.all_gather(all, ones)
        dist.all_reduce(ones)
        dist.barrier()
        assert torch.equal(all[0], ones) and dist.get_backend() == "nccl"
        dist.broadcast(torch.ones(2), 0)
    """
    )
    assert (report.status, report.steps) == (DEVICE_ERROR, 3)
    assert report.failure
    assert report.failure.line
    assert report.failure.line.number == 20
    assert "device type cpu" in report.failure.message


@pytest.mark.parametrize(
    ("arguments", "script", "rest"),
    [
        (
            "torchrun --nproc-per-node 4 train.py --steps 9",
            "train.py",
            ["--steps", "9"],
        ),
        ("python -m torch.distributed.run -m pkg.train -x", "pkg.train", ["-x"]),
        ("python train.py -x", "train.py", ["-x"]),
        ("--steps 2 torchrun --standalone train.py", "train.py", []),
        ("train.py torchrun", "train.py", ["torchrun"]),
    ],
)
def test_a_launcher_in_front(arguments: str, script: str, rest: list[str]) -> None:
    ours = command.options(arguments.split(), "to-device dryrun")
    assert (ours.script, ours.arguments) == (script, rest)
    assert ours.is_module == (script == "pkg.train")
    assert ("RANK" in ours.environment) == ("torch" in arguments.partition("train")[0])


def test_a_replay_buffer_is_filled_before_training() -> None:
    report = dry_run(
        """
        import time, torch
        net = torch.nn.Linear(4, 2).cuda()
        optimizer = torch.optim.Adam(net.parameters())
        states = []
        for step in range(1_000_000):
            with torch.no_grad():
                net(torch.rand(4).cuda())
            states.append(torch.rand(4).cuda())
            time.sleep(0.02)
            if len(states) > 100:
                loss = net(torch.stack(states)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    """,
        seconds=120,
    )
    assert report.status == OK
    assert report.steps > 3


def test_files_that_belong_to_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("project", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "project" / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path / "elsewhere")
    script = Script("../project/examples/train.py", 3, lambda: Progress(0, 0, 0))
    assert script.owns(str(tmp_path / "project" / "examples" / "data.py"))
    assert script.owns(str(tmp_path / "project" / "package" / "model.py"))
    assert script.owns(str(tmp_path / "elsewhere" / "model.py"))
    assert not script.owns(str(tmp_path / "model.py"))
    assert not script.owns(str(tmp_path / "lib" / "site-packages" / "model.py"))
    assert not script.owns(str(tmp_path / "project2" / "model.py"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "project2")])
    script.own_new_folders()
    assert script.owns(str(tmp_path / "project2" / "model.py"))


def test_a_script_that_uses_no_cuda() -> None:
    report = dry_run("import torch\nprint(torch.rand(3).sum().item())")
    assert NOTHING_ON_CUDA in "".join(terminal_lines(report.plain()))


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("total += loss.item()", ".item()"),
        ("print(loss)", "print"),
        ("print(f'{loss:.3f}')", "print"),
        ("total += float(loss)", "float()"),
        ("if loss > 100: break", "if"),
        ("predicted = outputs.cpu()", ".cpu()"),
        ("predicted = outputs.argmax(1).tolist()", ".tolist()"),
        ("torch.cuda.synchronize()", ".synchronize()"),
        ("likely = outputs[outputs > 0]", "[mask]"),
        ("outputs[outputs > 0] = outputs[outputs > 1].sum()", "[mask] ="),
        ("images[:, :10] = outputs", "copy to host"),
        ("images.cuda()", "a copy from unpinned memory"),
        ("images.pin_memory().cuda()", "a copy without non_blocking"),
    ],
)
def test_what_the_host_waits_for_in_each_step(line: str, cause: str) -> None:
    waits = {(wait.line.number, wait.cause) for wait in training(line).waits}
    assert (17, cause) in waits
    assert (12, "a copy from unpinned memory") in waits  # the images


def test_bytes_that_are_copied_in_each_step() -> None:
    """The data of line 17 is the same each time, however often a step copies it."""
    report = training(
        "torch.ones(6).to(device); "
        "[torch.zeros(4).to(device) for _ in range(1 + epoch % 2)]"
    )
    copies = {copy.line.number: copy for copy in report.copies}
    assert copies[12].bytes == 64 * 784 * FLOAT
    assert not copies[12].same
    assert copies[17].bytes == 10 * FLOAT
    assert copies[17].same


def test_a_legacy_type_makes_and_converts_tensors_on_the_device() -> None:
    report = training(
        "Legacy = torch.cuda.FloatTensor; Legacy(6, 2); "
        "torch.ones(3).double().type(Legacy); Legacy(torch.ones(4).double().numpy())"
    )
    copies = {copy.line.number: copy for copy in report.copies}
    assert (copies[17].times, copies[17].bytes) == (2, (3 + 4) * 2 * FLOAT)
    assert sum(wait.times for wait in report.waits if wait.line.number == 17) == 2


def test_peak_memory_of_a_network_counted_by_hand() -> None:
    report = training()
    parameters = (784 * 256 + 256 + 256 * 10 + 10) * FLOAT
    # A batch, what the layers keep of it, and as much again of gradients on the way.
    activations = 64 * (784 + 2 * 256 + 3 * 10) * FLOAT
    assert report.memory
    assert report.memory.peak == pytest.approx(2 * parameters + activations, rel=0.15)
    assert report.memory.parts["parameters"] == pytest.approx(parameters, rel=0.02)
    teacher = "net = nn.Linear(784, 784).cuda()\nnet(torch.ones(1, 784).cuda())"
    beside = training(after=teacher).memory
    assert beside
    assert beside.parts["parameters"] > 784 * 784 * FLOAT


def test_the_largest_batch_is_near_the_truth() -> None:
    limit = 10_000_000
    text = TRAINING.format(line="pass", after="")
    memory = dry_run(text, memory=limit).memory
    assert memory
    assert memory.largest_batch
    for share, fits in ((0.9, True), (1.1, False)):
        rows = int(memory.largest_batch * share)
        other = dry_run(text.replace("64", str(rows)), memory=limit)
        assert (other.status == OK) == fits


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        ("total += loss", True),
        ("total = total + loss", True),
        ("if True: total += loss\n    total /= 2", True),
        ("losses = globals().setdefault('losses', []); losses.append(loss)", True),
        ("total += loss.detach()", False),
        ("loss = loss + 0", False),
        ("for _ in range(epoch): loss = loss + 0", False),  # larger as by chance
    ],
)
def test_a_line_that_keeps_each_steps_graph(line: str, keeps: bool) -> None:
    growth = training(line).growth
    assert bool(growth and growth.keeps_graph) == keeps
    if keeps:
        assert growth
        assert growth.line
        assert growth.line.number == 17


def test_a_callback_that_keeps_each_steps_graph() -> None:
    maker = """class History:
    def __init__(self): self.values = {"loss": []}
    def end(self, state):
        for key in self.values: self.values[key].append(state[key])
class Learner:
    def __init__(self): self.callbacks = [History()]
    def end(self, **state):
        for callback in self.callbacks: callback.end(state)
learner = Learner()
"""
    text = TRAINING.format(line="learner.end(loss=loss)", after="")
    growth = dry_run(text.replace("total = 0.0\n", maker)).growth
    assert growth
    assert growth.line
    assert text.splitlines()[8] == "total = 0.0"
    assert growth.line.number == 12  # the last line of History


@pytest.mark.parametrize(
    ("maker", "used"),
    [
        ("history = History()", "history"),
        ("logs = {'loss': History()}", "logs['loss']"),
    ],
)
def test_a_graph_that_an_object_keeps(maker: str, used: str) -> None:
    text = TRAINING.format(line=f"{used}.log(loss)", after="")
    report = dry_run(f"""
class History:
    def __init__(self):
        self.values = []
    def log(self, value):
        self.values.append(value)
{maker}
{text}""")
    assert report.growth and report.growth.line  # noqa: PT018
    assert report.growth.line.number == 6


@pytest.mark.parametrize(
    ("maker", "line"),
    [
        ("model = ", 6),
        ("def build():\n    return nn.Linear(784, 10)\nmodel = build() #", 8),
    ],
)
def test_work_on_the_cpu_although_the_device_was_asked_for(
    maker: str, line: int
) -> None:
    text = TRAINING.format(line="", after="").replace(".to(device)", "")
    report = dry_run(text.replace("model = ", maker, 1))
    assert report.status == OK
    assert report.on_cpu
    assert report.on_cpu.number == line


def test_a_batch_is_forgotten_by_its_loop() -> None:
    report = dry_run("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        model = torch.nn.Linear(3, 2).cuda()
        loader = DataLoader(TensorDataset(torch.rand(8, 3)), batch_size=4)
        for (images,) in loader:
            model(images)
    """)
    assert report.failure
    assert report.failure.culprit
    assert report.failure.culprit.number == 6
    assert report.failure.arguments[0].name == "images"


def test_out_of_memory_is_an_error_of_devices() -> None:
    """Also if the result would be larger than the host's memory."""
    copy = dry_run("import torch\ntorch.zeros(1000, 1000).cuda()", memory=1_000_000)
    product = dry_run("import torch\nx = torch.ones(10**6, 1).cuda()\nx @ x.T")
    for report in (copy, product):
        assert report.status == DEVICE_ERROR
        assert report.failure
        assert "CUDA out of memory" in report.failure.message
        assert report.memory is None
        assert list(terminal_lines(report.plain()))


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("import torch\nraise ValueError('of its own')", SCRIPT_ERROR),
        ("x = = 1", SCRIPT_ERROR),
        ("import sys\nsys.exit(1)", SCRIPT_ERROR),
        ("import sys\nsys.exit()", OK),
        ("open('there is no such file')", SCRIPT_ERROR),
        ("import torch\ntorch.ones(2) @ torch.ones(3)", SCRIPT_ERROR),
        ("import torch\ntorch.zeros(1, device='cuda:1')", NOT_SIMULATED),
        ("import torch\ntorch.cuda.set_device(1)", NOT_SIMULATED),
        ("import torch\ntorch.cuda.CUDAGraph()", NOT_SIMULATED),
        ("import torch\nraise ValueError(type(torch.cuda.IntTensor))", NOT_SIMULATED),
        ("import torch\ntorch.eye(2).to_sparse().cuda()", NOT_SIMULATED),
        (
            "import torch\ntorch.distributed.init_process_group('nccl', world_size=2)",
            NOT_SIMULATED,
        ),
        # An LSTM's state is a tuple. Without CUDA, no line asks it for `cuda`.
        ("import torch\n(torch.ones(2), torch.ones(2)).cuda()", DEVICE_ERROR),
        ("import torch\ntorch.FloatTensor(torch.ones(2).cuda())", DEVICE_ERROR),
        (
            "import torch\nx = torch.ones(2, requires_grad=True).cuda()\n"
            "x.register_hook(lambda grad: grad.cpu())\nx.sum().backward()",
            DEVICE_ERROR,
        ),
        (
            "import torch\nx = torch.ones(4).cuda()\n"
            "x.tensor_split(torch.tensor([2]).cuda())",
            DEVICE_ERROR,
        ),
        ("import numpy\nnumpy.genfromtxt('there is no such file')", SCRIPT_ERROR),
        # The first of these scripts breaks the dry run's own code.
        (
            "import torch\nfrom to_device.dryrun import cuda\ndel cuda.legacy_type\n"
            "torch.ones(2).type(torch.float64)",
            NOT_SIMULATED,
        ),
        ("import torch\nfor pair in zip([1], [], strict=True): pass", SCRIPT_ERROR),
        ("import torch\ntorch.ones(2, device='cuda')[2]", SCRIPT_ERROR),
    ],
)
def test_statuses(text: str, status: int) -> None:
    report = dry_run(text)
    assert report.status == status
    assert report.failure or report.notes or status == OK


@pytest.mark.slow
def test_a_script_that_does_not_end() -> None:
    """Also where interrupts are ignored: in a program started in the background."""
    text = "import time\nwhile True: time.sleep(0.01)"
    request = Request("script.py", text, seconds=1, processor_seconds=100)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        report = command.dry_run(request)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert report["status"] == NOT_SIMULATED
    assert "after 1 s" in report["notes"][0]  # the limit that it reached


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_busy_machine_gives_the_same_report() -> None:
    """Its loops end at the same steps, and the time limit counts processor time."""
    long = TRAINING.format(line="losses = [loss.item()]", after="model(images)")
    idle = "import time\nfor _ in range(20): time.sleep(0.1)"
    requests = [
        Request("script.py", text, processor_seconds=30, seconds=150)
        for text in (long, idle)
    ]
    quiet = list(map(command.dry_run, requests))
    loops = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)
    ]
    try:
        assert list(map(command.dry_run, requests)) == quiet
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def test_a_notebooks_cells() -> None:
    code = ["%matplotlib inline\n", "import torch\n", "model = torch.nn.Linear(1, 1)"]
    cells = [code, ["model.cuda()(torch.ones(1, 1))"]]
    notebook = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    failure = dry_run(json.dumps(notebook), "notebook.ipynb").failure
    assert failure
    assert failure.line == ("cell 2", 1)


@pytest.mark.parametrize("name", EXPECTED)
def test_scripts_as_people_write_them(name: str) -> None:
    expected = EXPECTED[name]
    text = (FOLDER / name).read_text("utf-8")
    options = {"arguments": expected.get("script_arguments", [])}
    report = dry_run(text, name, **options, starts_processes=False).plain()
    assert report["status"] == expected["status"]
    if failure := report["failure"]:
        assert expected["message"] in failure["message"]
        assert failure["line"]["line"] == expected["error_line"]
        assert failure["culprit"]["line"] in expected["culprit_line"]
    else:
        assert not any(report[key] for key in ("growth", "on_cpu", "remarks"))
