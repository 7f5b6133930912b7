"""A dry run in which large tensors have sizes but no values."""

import json
from pathlib import Path

import pytest

from tests.toolkit.dryrun.dry_run import dry_run
from to_device.dryrun import command
from to_device.dryrun.report import DEVICE_ERROR, NOT_SIMULATED, OK

TRAINING = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential({layers}).cuda()
optimizer = torch.optim.{optimizer}(model.parameters())
scaler = torch.amp.GradScaler("cuda", enabled={half})
losses = []
for step in range(4):
    x = torch.randn({inputs}).cuda()
    with torch.autocast("cuda", torch.float16, enabled={half}):
        y = model(x)
        y = y[0] if isinstance(y, tuple) else y
        loss = y.float().square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
    print(f"{{loss.item():.3f}}", sum(losses) / len(losses))
"""
LARGE_LAYERS = "*[nn.Linear(2**14, 2**14, bias=False) for _ in range(20)]"


@pytest.mark.parametrize(
    ("layers", "inputs", "optimizer", "half"),
    [
        ("nn.Linear(600, 600), nn.GELU(), nn.Linear(600, 1)", "512, 600", "Adam", True),
        ("nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64)", "8, 3, 40, 40", "SGD", False),
        ("nn.LSTM(300, 300)", "5, 200, 300", "AdamW", False),
        (
            "nn.TransformerEncoderLayer(256, 4, dim_feedforward=2000)",
            *("20, 30, 256", "Adam", False),
        ),
    ],
)
def test_waits_copies_and_memory_are_those_of_a_run_with_values(
    layers: str, inputs: str, optimizer: str, half: bool
) -> None:
    script = TRAINING.format(**locals())
    usual, without = dry_run(script), dry_run(script, values=False)
    assert usual.status == without.status == OK
    assert usual.memory == without.memory
    assert usual.waits == without.waits
    assert [(c.line, c.way, c.times, c.bytes) for c in usual.copies] == [
        (c.line, c.way, c.times, c.bytes) for c in without.copies
    ]


def test_a_model_that_is_larger_than_this_machine() -> None:
    script = TRAINING.format(
        layers=LARGE_LAYERS, inputs="2, 2**14", optimizer="Adam", half=False
    )
    after = "import resource as r\n"
    after += "facts = {'kib': r.getrusage(r.RUSAGE_SELF).ru_maxrss}"
    report = dry_run(script, values=False, capacity=1 << 40, after=after)
    assert report.status == OK
    assert report.memory
    parameters = 20 * 4 * 2**28
    assert report.memory.parts["parameters"] == parameters
    assert report.memory.parts["optimizer state"] >= 2 * parameters
    assert report.memory.peak >= 4 * parameters
    assert report.facts["kib"] * 1024 < parameters // 8


def test_a_script_that_runs_out_of_this_machines_memory_starts_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    file = tmp_path / "script.py"
    file.write_text(
        TRAINING.format(
            layers="nn.Linear(2**11, 2**11, bias=False)",
            inputs="2, 2**11",
            optimizer="Adam",
            half=False,
        )
    )
    monkeypatch.setattr(command, "available_memory", lambda: 32 << 20)
    monkeypatch.setattr(command, "end_with_pipe", lambda: None)
    assert command.main([str(file), "--json"]) == OK
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["failure"]) == (OK, None)
    assert report["memory"]["parts"]["parameters"] == 4 * 2**22
    assert report["memory"]["peak"] >= 4 * 4 * 2**22  # more than there was


LARGE = "import torch\nx = torch.randn(1000, 1000, device='cuda')\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("if x.sum() > 0: print()", NOT_SIMULATED),
        ("best = min(1.0, x.mean().item())", NOT_SIMULATED),
        ("x[x > 0]", NOT_SIMULATED),
        ("torch.zeros(int(x.mean()))", NOT_SIMULATED),
        ("torch.nn.functional.one_hot(x[0].long())", NOT_SIMULATED),
        ("1 / float(x.mean())", NOT_SIMULATED),  # perhaps for want of a value
        ("x + torch.zeros(1000)", DEVICE_ERROR),
        ("x.cpu() @ x", DEVICE_ERROR),
        ("x.numpy()", DEVICE_ERROR),
        ("print(x, x.mean().item()); x.cpu().numpy()", OK),
        ("n = torch.arange(3).cuda()\nif n.sum() == 3: x[n[1:]] @ x", OK),
    ],
)
def test_what_can_be_said_without_values(text: str, status: int) -> None:
    report = dry_run(LARGE + text, values=False)
    assert report.status == status
    if status != OK and report.failure:
        assert report.failure.line
        assert report.failure.line.number == 3


def test_small_tensors_keep_their_values() -> None:
    script = """
    import torch
    x = torch.arange(4.0).cuda()
    x += torch.ones(4).cuda()
    assert x.tolist() == [1, 2, 3, 4]
    assert x[x > 2].sum().item() == 7
    """
    assert dry_run(script, values=False).status == OK
