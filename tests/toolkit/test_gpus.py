"""The table of GPUs, and what a dry run says of one."""

import pytest
import torch

from tests.toolkit.dryrun.dry_run import dry_run
from to_device import builds, gpus
from to_device.dryrun.report import DEVICE_ERROR, OK
from to_device.errors import ExplainedError


@pytest.mark.parametrize("gpu", gpus.known(), ids=lambda gpu: gpu.title)
def test_each_gpu_is_found_by_its_names_and_leaves_room(gpu: gpus.GPU) -> None:
    for name in (gpu.title, gpu.name, gpu.title.lower().replace(" ", "-")):
        assert gpus.find(name) == gpu
    least, most = gpu.usable
    assert 0.85 * gpu.mebibytes[0] < least / gpus.MEBIBYTE < most / gpus.MEBIBYTE
    assert most < gpu.mebibytes[1] * gpus.MEBIBYTE
    assert gpus.smallest(least).usable[0] >= least


@pytest.mark.parametrize("name", ["A100", "RTX", "L4", "Voodoo 2", ""])
def test_an_unclear_name_is_a_sentence_with_the_names(name: str) -> None:
    with pytest.raises(ExplainedError, match=r"A100 80GB|RTX 4090"):
        gpus.find(name)


def test_no_gpu_is_large_enough_for_a_terabyte() -> None:
    assert gpus.smallest(10**12) is None
    assert gpus.smallest(0) == gpus.known()[0]


def test_old_gpus_have_code_until_the_last_build_for_them() -> None:
    ((cuda, until), *_) = builds.table()["last"].items()
    old = gpus.find("P100")
    assert old.why_no_code(until) == ""
    newest = builds.table()["torch"]
    why = old.why_no_code(f"{newest}.0+cpu")
    assert until in why
    assert builds.index(cuda) in why
    assert not any(gpu.why_no_code(newest) for gpu in gpus.known()[-3:])


def test_a_script_sees_the_gpu_and_learns_what_fits() -> None:
    report = dry_run(
        """
        import torch
        assert torch.cuda.get_device_name() == "Tesla T4"
        assert torch.cuda.get_device_capability() == (7, 5)
        assert torch.cuda.get_device_properties(0).total_memory > 15e9
        assert torch.cuda.is_bf16_supported()
        assert not torch.cuda.is_bf16_supported(including_emulation=False)
        net = torch.nn.Linear(64, 64).cuda()
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        for _ in range(4):
            with torch.autocast("cuda", torch.bfloat16):
                loss = net(torch.rand(32, 64, device="cuda")).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
        gpu="T4",
    )
    assert report.status == OK, report.notes
    assert report.fit
    assert report.fit.fits
    assert report.fit.largest_batch
    least, most = report.fit.largest_batch
    assert 32 < least < most
    assert any("bfloat16" in note for note in report.notes)


def test_a_gpu_without_code_is_a_device_error() -> None:
    report = dry_run("import torch\ntorch.zeros(1).cuda()", gpu="P100")
    if gpus.find("P100").why_no_code(torch.__version__):
        assert report.status == DEVICE_ERROR
        assert "no kernel image" in report.notes[0]
    else:
        assert report.status == OK
