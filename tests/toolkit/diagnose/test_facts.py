import getpass
import json
import multiprocessing
import re
import socket
import stat
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from to_device import builds, devices
from to_device.diagnose import facts
from to_device.diagnose.command import main, warn
from to_device.diagnose.diagnosis import diagnose
from to_device.diagnose.machine import Facts
from to_device.errors import ExplainedError
from to_device.nvml import NONE


def test_facts_agree_with_torch() -> None:
    # In another process, since the simulated accelerator may be in this one.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        machine = processes.submit(facts.probe).result()
    accelerator = devices.accelerator()
    assert machine.torch == torch.__version__
    assert machine.accelerator == (accelerator.type if accelerator else "")
    assert bool(machine.seen) == (accelerator is not None)
    assert bool(machine.complaint) == (accelerator is None and machine.build != "CPU")
    assert diagnose(machine).state == ("cpu" if accelerator is None else "accelerator")


def test_a_report_names_no_person_host_or_folder() -> None:
    text = json.dumps(asdict(facts.probe()))
    for private in (getpass.getuser(), socket.gethostname(), str(Path.home())):
        if len(private) > 1:  # "/" is the home of some users
            assert not re.search(rf"(?<!\w){re.escape(private)}(?!\w)", text)
    assert not re.search(r"\b\d{1,3}(\.\d{1,3}){3}\b", text)  # an IP address
    assert "GPU-" not in text


def test_messages_are_made_anonymous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts.Path, "home", lambda: Path("/home/ada"))
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    monkeypatch.setattr(socket, "gethostname", lambda: "turing")
    message = "can't read /home/ada/x on turing for ada, says adapter"
    assert facts.anonymous(message) == "can't read ~/x on host for user, says adapter"


def test_hardware_ids_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    value = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,1"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert ("CUDA_VISIBLE_DEVICES", "GPU-…,1") in facts.probe().variables


def test_a_device_that_fails_is_seen_with_its_complaint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "accelerator", lambda: torch.device("meta"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
    kind, (device,), complaint = facts.ask_torch()
    assert (kind, complaint) == ("meta", "")
    assert "meta" in device.complaint  # no number can be read from a meta tensor
    assert facts.try_to_compute(torch.device("cpu")) == ""


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a shebang")
def test_a_tool_that_hangs_or_fails_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for name, script in {
        "hangs": "echo half; exec sleep 600",
        "fails": "echo half; exit 3",
        "speaks": "echo well",
        "nvidia-smi": "echo '580.95.05, NVIDIA H200'; echo '580.95.05, NVIDIA H200'",
    }.items():
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(tool.stat().st_mode | stat.S_IEXEC)
    assert facts.run_tool("hangs", seconds=0.5) == ""
    assert facts.run_tool("fails", seconds=60) == ""
    assert facts.run_tool("is-not-here") == ""
    assert facts.run_tool("speaks", seconds=60) == "well"
    assert facts.nvidia_smi() == ("580.95.05", ("NVIDIA H200", "NVIDIA H200"))
    monkeypatch.setattr(facts.nvml, "read", lambda: NONE)
    assert facts.probe().nvidia_driver == "580.95.05"


def test_gpus_on_the_bus_are_found_by_vendor_and_class(tmp_path: Path) -> None:
    for name, (vendor, kind) in {
        "gpu": ("0x10de", "0x030200"),
        "instinct": ("0x1002", "0x120000"),
        "network": ("0x8086", "0x020000"),
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "vendor").write_text(vendor + "\n")
        (folder / "class").write_text(kind + "\n")
    (tmp_path / "broken").mkdir()
    assert sorted(facts._pci_ids(tmp_path)) == ["1002", "10de"]
    assert facts._pci_ids(tmp_path / "no such bus") == []


@pytest.mark.parametrize(
    ("machine", "count"),
    [
        (Facts(), 0),
        (Facts(nvidia_gpus=("T4",), releases=builds.releases("x86_64")), 1),
        (Facts(cuda="13.2", wsl=True), 0),
    ],
    ids=["no GPU", "the CPU build beside a GPU", "WSL, which may have no GPU"],
)
def test_a_program_is_warned_of_a_gpu_that_torch_can_not_use(
    machine: Facts, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(facts, "probe", lambda: machine)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn()
    said = [str(warning.message) for warning in caught]
    assert len(said) == count
    assert all("pip install" in text for text in said)


def test_a_torch_that_is_too_old_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(torch, "accelerator")
    assert main([]) == 2
    assert "torch 2.6 or later is needed. Run:" in capsys.readouterr().err
    with pytest.raises(ExplainedError):
        warn()


def test_the_builds_come_from_older_tables_of_torch_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(facts.platform, "machine", lambda: "x86_64")
    table = "PYTORCH_RELEASES_CODE_CC"
    monkeypatch.setattr(torch.cuda, table, {"12.8": {120, 70}})
    assert facts.releases() == (("12.8", ("sm_70", "sm_120")),)
    monkeypatch.delattr(torch.cuda, table)
    assert facts.releases() == builds.releases("x86_64")
