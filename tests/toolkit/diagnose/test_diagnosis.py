from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from to_device.builds import runs_on
from to_device.diagnose.diagnosis import CAUSES, diagnose, words
from to_device.diagnose.machine import HIDING, Facts, VisibleDevice

RELEASES = (
    ("12.6", ("sm_50", "sm_60", "sm_80", "sm_90")),
    ("13.0", ("sm_75", "sm_80", "sm_90", "sm_120")),
)
BUILT = {"torch": "2.15.0+cu130", "cuda": "13.0", "releases": RELEASES}
CODES = ("sm_75", "sm_80", "sm_90", "sm_120")
DRIVER = {
    "vendors": ("NVIDIA",),
    "nvidia_gpus": ("RTX 4090",),
    "nvidia_driver": "580.95",
    "driver_cuda": "13.0",
}
CARD, AMD = VisibleDevice("RTX 4090", "sm_89"), VisibleDevice("MI300X", "gfx942")
OLD = VisibleDevice("GTX 1080", "sm_61", "CUDA error: no kernel image")
MAC = {"system": "Darwin", "machine": "arm64", "torch": "2.15.0", "macos": "15.1"}
CASES = {
    "works": Facts(**BUILT, **DRIVER, accelerator="cuda", seen=(CARD,)),
    "architecture_missing": Facts(
        **BUILT, architectures=CODES, accelerator="cuda", seen=(OLD,)
    ),
    "computation_failed": Facts(
        **BUILT,
        architectures=CODES,
        accelerator="cuda",
        seen=(VisibleDevice("RTX 4090", "sm_89", "CUDA error: busy or unavailable"),),
    ),
    "rosetta": Facts(system="Darwin", machine="x86_64", macos="15.1", rosetta=True),
    "intel_mac": Facts(system="Darwin", machine="x86_64", macos="13.7"),
    "mps_not_built": Facts(**MAC),
    "macos_too_old": Facts(**{**MAC, "macos": "13.7.4"}, mps=True),
    "mps_unavailable": Facts(**MAC, mps=True),
    "cpu_build": Facts(torch="2.15.0+cpu", releases=RELEASES, **DRIVER),
    "other_build": Facts(**BUILT, vendors=("AMD",)),
    "wsl_without_driver": Facts(**BUILT, wsl=True),
    "not_passed_through": Facts(**BUILT, vendors=("NVIDIA",), container=True),
    "no_driver": Facts(**BUILT, vendors=("NVIDIA",)),
    "driver_too_old": Facts(
        **BUILT, **{**DRIVER, "nvidia_driver": "535.1", "driver_cuda": "12.2"}
    ),
    "no_kfd": Facts(hip="6.4", vendors=("AMD",)),
    "no_permission": Facts(hip="6.4", vendors=("AMD",), kfd=True),
    "hidden": Facts(**BUILT, **DRIVER, variables=(("CUDA_VISIBLE_DEVICES", ""),)),
    "cuda_failed": Facts(**BUILT, **DRIVER, complaint="CUDA unknown error"),
    "rocm_failed": Facts(hip="6.4", vendors=("AMD",), kfd=True, kfd_readable=True),
    "xpu_without_driver": Facts(xpu="20250101", vendors=("Intel",)),
    "no_gpu": Facts(**BUILT),
}


def test_no_cause_is_without_a_case() -> None:
    names = [cause.__name__ for cause in CAUSES]
    assert list(CASES) == list(words.table("causes")) == names


@pytest.mark.parametrize("cause", CASES)
def test_every_cause_is_found(cause: str) -> None:
    diagnosis = diagnose(CASES[cause])
    assert diagnosis.cause == cause
    assert diagnosis.verdict.count(". ") == 0  # one sentence
    assert diagnosis.verdict.endswith(".")


def setting(value: str, name: str = "CUDA_VISIBLE_DEVICES") -> dict[str, Any]:
    return {"variables": ((name, value),)}


@pytest.mark.parametrize(
    ("case", "changes", "parts"),
    [
        ("architecture_missing", {}, ["/whl/cu126"]),  # the only one with code for 6.1
        ("driver_too_old", {}, ["/whl/cu126"]),
        # No wheel of the table has code for this GPU that this driver runs.
        ("driver_too_old", {"nvidia_gpus": ("RTX 5090",)}, ["previous-versions"]),
        ("driver_too_old", {"driver_cuda": "11.4"}, ["/whl/cu118"]),
        ("cpu_build", {"nvidia_gpus": ("GTX 1080",)}, ["/whl/cu126"]),
        ("cuda_failed", {"driver_cuda": ""}, ["doesn't tell"]),
        ("wsl_without_driver", {"container": True}, ["--gpus all"]),
        ("cpu_build", {}, ["/whl/cu130"]),
        ("cpu_build", {"driver_cuda": "12.2"}, ["/whl/cu126"]),  # a later minor version
        (
            "cpu_build",  # no build that this driver runs has code for the GPU
            {"driver_cuda": "12.2", "nvidia_gpus": ("RTX 5090",)},
            ["update", "/whl/cu13"],
        ),
        ("cpu_build", {"system": "Windows"}, ["On Windows"]),
        ("hidden", {}, ["unset CUDA_VISIBLE_DEVICES"]),
        ("no_permission", {}, ["render"]),
        ("wsl_without_driver", {}, ["wsl --update"]),
        ("not_passed_through", {}, ["--gpus all"]),
        ("no_gpu", {}, ["That's fine"]),
        *(("rocm_failed", setting("-1", name), [name]) for name in HIDING["ROCm"]),
        ("works", {"hip": "6.4", "seen": (AMD,)}, ["MI300X", "ROCm"]),
        ("works", {"cuda": "", "xpu": "2025", "accelerator": "xpu"}, ["XPU"]),
        ("works", {"mps": True, "accelerator": "mps"}, ["MPS"]),
        ("works", {"seen": (CARD, OLD)}, ["RTX 4090", "2 devices", "GTX 1080"]),
        (
            "works",
            {"nvidia_gpus": ("a", "b", "c"), **setting("1")},
            ["see 2 of this machine"],
        ),
    ],
)
def test_a_diagnosis_names_what_is_there_and_what_helps(
    case: str, changes: dict[str, Any], parts: list[str]
) -> None:
    diagnosis = diagnose(replace(CASES[case], **changes))
    text = (
        f"{diagnosis.verdict} {diagnosis.why} {diagnosis.way_out} {diagnosis.command}"
    )
    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    ("case", "changes", "cause"),
    [
        # A variable hides only what it does not name.
        ("hidden", setting("-1"), "hidden"),
        ("hidden", setting("1"), "hidden"),  # there is one GPU, number 0
        ("hidden", setting("GPU-…"), "hidden"),  # not found, else torch would see it
        ("hidden", setting("0"), "cuda_failed"),
        ("hidden", setting("0,1"), "cuda_failed"),
        *(
            ("cuda_failed", setting("-1", name), "cuda_failed")
            for name in HIDING["ROCm"]
            if name != "CUDA_VISIBLE_DEVICES"
        ),
        ("no_gpu", setting(""), "no_gpu"),
        # What MPS wants of macOS depends on the version of torch.
        ("mps_unavailable", {"macos": "14.0"}, "mps_unavailable"),
        ("mps_unavailable", {"torch": "2.9.0", "macos": "13.7"}, "macos_too_old"),
        ("mps_unavailable", {"torch": "2.8.0", "macos": "13.7"}, "mps_unavailable"),
        ("mps_unavailable", {"torch": "2.8.0", "macos": "12.7"}, "macos_too_old"),
        # A driver runs its major version and all before.
        ("cuda_failed", {"cuda": "13.2", "driver_cuda": "12.9"}, "driver_too_old"),
        ("cuda_failed", {"cuda": "13.2", "driver_cuda": "13.0"}, "cuda_failed"),
        ("cuda_failed", {"cuda": "13.2", "driver_cuda": "14.1"}, "cuda_failed"),
    ],
)
def test_a_small_change_is_another_cause_or_none(
    case: str, changes: dict[str, Any], cause: str
) -> None:
    assert diagnose(replace(CASES[case], **changes)).cause == cause


@pytest.mark.parametrize(
    ("built", "architecture", "runs"),
    [
        (("sm_80",), "sm_80", True),
        (("sm_80",), "sm_89", True),  # later minor version
        (("sm_86",), "sm_80", False),  # earlier minor version
        (("sm_80",), "sm_90", False),  # later major version
        (("sm_90a",), "sm_90", True),
        (("sm_100",), "sm_103", True),
        (("sm_100",), "sm_120", False),
        (("compute_80",), "sm_120", True),  # compiled when loaded
        (("compute_90",), "sm_80", False),
        (("gfx942",), "gfx942", True),
        (("gfx942",), "gfx1100", False),
    ],
)
def test_code_runs_where_it_may(
    built: tuple[str, ...], architecture: str, runs: bool
) -> None:
    assert runs_on(built, architecture) is runs


WORDS = st.sampled_from(["", "13.2", "12.6", "x", "2.9.1", "0", "-1", "sm_61", "`a`\n"])


def tuples(elements: st.SearchStrategy, most: int = 2) -> st.SearchStrategy:
    return st.lists(elements, max_size=most).map(tuple)


FLAGS = ("mps", "kfd", "kfd_readable", "render_node", "container", "wsl", "rosetta")
FACTS = st.builds(
    Facts,
    system=st.sampled_from(["Linux", "Darwin", "Windows", "Java"]),
    machine=st.sampled_from(["x86_64", "arm64", ""]),
    torch=WORDS,
    cuda=WORDS,
    hip=st.sampled_from(["", "6.4"]),
    xpu=st.sampled_from(["", "2025"]),
    architectures=tuples(WORDS),
    releases=tuples(st.tuples(WORDS, tuples(WORDS))),
    accelerator=st.sampled_from(["", "", "cuda", "mps", "xpu"]),
    seen=tuples(st.builds(VisibleDevice, WORDS, WORDS, WORDS)),
    complaint=WORDS,
    vendors=tuples(st.sampled_from(["NVIDIA", "AMD", "Intel"]), 3),
    nvidia_gpus=tuples(WORDS),
    nvidia_driver=WORDS,
    driver_cuda=WORDS,
    macos=WORDS,
    variables=tuples(st.tuples(st.sampled_from(sum(HIDING.values(), ())), WORDS)),
    **dict.fromkeys(FLAGS, st.booleans()),
)


@settings(max_examples=1000)
@given(facts=FACTS)
def test_any_facts_have_one_diagnosis(facts: Facts) -> None:
    diagnosis = diagnose(facts)
    assert diagnosis == diagnose(facts)
    assert diagnosis.cause in CASES
    assert "http:" not in diagnosis.way_out
    assert "None" not in diagnosis.verdict
    for text in (diagnosis.verdict, diagnosis.why, diagnosis.way_out):
        assert len(text) > 20
        assert text == text.strip()
        assert "  " not in text
    assert "\n" not in diagnosis.command
    if diagnosis.state == "cpu":
        assert "CPU" in diagnosis.verdict
