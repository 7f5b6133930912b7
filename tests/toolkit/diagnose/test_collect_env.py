import json
import re
import subprocess
import sys
import time

import pytest

from tests.process import ROOT
from tests.toolkit.diagnose.reports import LINUX
from to_device.diagnose.collect_env import diagnose_report, words
from to_device.errors import ExplainedError

RELEASES = (("12.6", ("sm_60", "sm_90")), ("13.0", ("sm_75", "sm_90")))
MAC = """\
PyTorch version: 2.9.0
CUDA used to build PyTorch: None
HIP used to build PyTorch: N/A
OS: macOS 13.6 (arm64)
Python platform: macOS-13.6-arm64-arm-64bit
Is CUDA available: False
GPU models and configuration: Could not collect
CPU:
Apple M1
"""
NO_GPU = LINUX.replace("GPU 0: NVIDIA GeForce RTX 3090", "Could not collect").replace(
    "580.65.06", "Could not collect"
)
NO_CUDA = NO_GPU.replace("Could not collect", "No CUDA")
AMD_BUILD = NO_GPU.replace("build PyTorch: 13.0", "build PyTorch: N/A").replace(
    "HIP used to build PyTorch: N/A", "HIP used to build PyTorch: 7.2"
)
INSTINCT = "c1:00.0 Processing accelerators: Advanced Micro Devices, Inc. [AMD/ATI]\n"
BUS = "01:00.0 VGA compatible controller: NVIDIA Corporation GA102 (rev a1)\n"
SMI = "| NVIDIA-SMI 535.183.01   Driver Version: 535.183.01   CUDA Version: 12.2 |\n"
GOOD = LINUX.replace("available: False\nGPU", "available: True\nGPU")
CPU_BUILD = LINUX.replace("+cu130", "+cpu").replace("PyTorch: 13.0", "PyTorch: None")
WINDOWS = CPU_BUILD.replace("Ubuntu 24.04.1 LTS (x86_64)", "Microsoft Windows 11 Pro")
ASSERT = "RuntimeError: CUDA error: no kernel image is available"


@pytest.mark.parametrize(
    ("text", "cause", "part"),
    [
        (LINUX, "cuda_failed", "CUDA 13"),
        (LINUX.replace("\n", "\r\n"), "cuda_failed", "CUDA 13"),
        (LINUX.replace("580.65", "535.18"), "driver_too_old", "CUDA 12"),
        (LINUX + SMI, "driver_too_old", "CUDA 12.2"),
        (LINUX + "CUDA_VISIBLE_DEVICES=-1\n", "hidden", "CUDA_VISIBLE_DEVICES=-1"),
        (CPU_BUILD, "cpu_build", "CUDA"),
        (WINDOWS, "cpu_build", "Windows"),
        (NO_GPU, "no_gpu", ""),
        (NO_GPU + BUS, "no_driver", ""),
        (NO_GPU + BUS + "RuntimeError: Found no NVIDIA driver", "no_driver", "Found"),
        (NO_GPU.replace("-generic", "-microsoft-WSL2"), "wsl_without_driver", "WSL"),
        (NO_CUDA + BUS, "no_driver", ""),
        (NO_CUDA.replace("-generic", "-microsoft-WSL2"), "wsl_without_driver", "WSL"),
        (AMD_BUILD + INSTINCT, "rocm_failed", "AMD"),
        (GOOD, "works", ""),
        (f"{GOOD}Built for: sm_75\nCapability: 8 6\n", "works", "RTX 3090"),
        (
            f"{GOOD}Built for: sm_75 sm_90\nCapability: 6 1\n{ASSERT}",
            "architecture_missing",
            "compute capability 6.1",
        ),
        (f"{GOOD}{ASSERT}", "computation_failed", "no kernel image"),
        (MAC + "MPS: True False\n", "macos_too_old", "macOS 14"),
        (
            MAC.replace("13.6", "15.1") + "MPS: True True\n",
            "works",
            "Nothing was computed",
        ),
        (MAC.replace("13.6", "15.1") + "MPS: True False\n", "mps_unavailable", "Metal"),
        (MAC.replace("arm64", "x86_64"), "rosetta", "x86"),
        (
            MAC.replace("arm64", "x86_64").replace("Apple M1", "Intel(R) Core(TM) i7"),
            "intel_mac",
            "Intel",
        ),
    ],
)
def test_a_report_leads_to_the_cause(text, cause, part):
    diagnosis = diagnose_report(text, RELEASES)
    assert diagnosis.cause == cause
    assert part in f"{diagnosis.verdict} {diagnosis.why} {diagnosis.way_out}"


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "PyTorch version:"),
        ("RuntimeError: CUDA error", "PyTorch version:"),
        (LINUX.replace("2.15.0+cu130", "N/A"), words("pasted.no_torch")),
        (MAC, words("pasted.no_mps")),
    ],
)
def test_too_little_is_a_sentence(text, part):
    with pytest.raises(ExplainedError, match=re.escape(part)):
        diagnose_report(text)


@pytest.mark.parametrize(
    "line", ["vga " * 20_000, f"GPU 0: a{' ' * 80_000}x", f"Ab:{' ' * 80_000}x"]
)
def test_a_long_line_is_read_at_once(line):
    began = time.process_time()
    diagnose_report(f"{LINUX}{line}\n{GOOD}")
    assert time.process_time() - began < 10


def run(*arguments: str, before: str = "", text: str = "") -> tuple[int, str, str]:
    code = f"{before}\nimport sys\nfrom to_device.cli import main\n"
    code += f"sys.exit(main(['diagnose', *{arguments!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=text,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


NOTHING_BUT_TORCH = """
import sys
wanted = {*sys.stdlib_module_names, "to_device", "torch"}
class Only:
    def find_spec(self, name, path=None, target=None):
        top, here = name.partition(".")[0], sys._getframe(1)
        while here and here.f_globals.get("__name__", "").startswith("importlib"):
            here = here.f_back
        asks = here.f_globals.get("__name__", "") if here else ""
        if top not in wanted and asks.partition(".")[0] == "to_device":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Only())
"""


def test_this_machine_is_diagnosed_with_nothing_but_torch():
    status, out, error = run("--json", before=NOTHING_BUT_TORCH)
    assert (status, error) in [(0, ""), (1, "")]
    assert json.loads(out)["cause"]


def test_without_torch_it_is_a_sentence():
    status, _, error = run(before=NOTHING_BUT_TORCH.replace(', "torch"', ""))
    assert status == 2
    assert "pip install torch" in error
    assert "Traceback" not in error


def test_the_report_of_another_machine_is_read_from_a_pipe_and_needs_no_torch():
    block = "import sys; sys.modules['torch'] = None"
    status, out, error = run("-", before=block, text=CPU_BUILD)
    assert (status, error) == (1, "")
    assert words("causes.cpu_build.reason", needed="CUDA") in out
    assert "`" not in out
    assert run("-", text="x")[0] == 2
    assert "/nowhere" in run("/nowhere")[2]
