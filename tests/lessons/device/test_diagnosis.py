"""Every cause of "no GPU", from facts that no machine here has to have."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lessons.device.device_result import HIDING, Facts, VisibleDevice
from core.lessons.device.diagnosis import CAUSES, diagnose, runs_on, words

RELEASES = (
    ("12.6", ("sm_50", "sm_60", "sm_90")),
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
MAC = {"system": "Darwin", "machine": "arm64", "torch": "2.15.0", "macos": "15.1"}
CASES = {
    "works": Facts(
        **BUILT,
        **DRIVER,
        accelerator="cuda",
        seen=(VisibleDevice("RTX 4090", "sm_89"),),
    ),
    "architecture_missing": Facts(
        **BUILT,
        architectures=CODES,
        accelerator="cuda",
        seen=(VisibleDevice("GTX 1080", "sm_61", "CUDA error: no kernel image"),),
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
    found = diagnose(CASES[cause])
    assert found.cause == cause
    assert found.verdict.count(". ") == 0  # one sentence
    assert found.verdict.endswith(".")


@pytest.mark.parametrize(
    ("cause", "cure"),
    [
        ("architecture_missing", "/whl/cu126"),  # the only one with code for 6.1
        ("driver_too_old", "/whl/cu126"),
        ("cpu_build", "/whl/cu130"),
        ("hidden", "unset CUDA_VISIBLE_DEVICES"),
        ("no_permission", "render"),
        ("wsl_without_driver", "wsl --update"),
        ("not_passed_through", "--gpus all"),
    ],
)
def test_the_way_out_is_a_command(cause: str, cure: str) -> None:
    assert cure in diagnose(CASES[cause]).command


def test_a_working_gpu_is_named_with_its_platform() -> None:
    facts = Facts(
        hip="6.4", accelerator="cuda", seen=(VisibleDevice("MI300X", "gfx942"),)
    )
    assert "MI300X" in diagnose(facts).verdict
    assert "ROCm" in diagnose(facts).verdict


@pytest.mark.parametrize("built", [Facts(mps=True), Facts(xpu="2025")])
def test_other_accelerators_work_too(built: Facts) -> None:
    kind = "mps" if built.mps else "xpu"
    facts = replace(built, accelerator=kind, seen=(VisibleDevice("it"),))
    found = diagnose(replace(facts, vendors=("Intel", "NVIDIA")))
    assert found.state == "accelerator"
    assert kind.upper() in found.verdict


def test_several_gpus_say_which_one_trains() -> None:
    facts = replace(
        CASES["works"],
        seen=(
            VisibleDevice("RTX 4090", "sm_89"),
            VisibleDevice("GTX 970", "sm_52", "no"),
        ),
    )
    found = diagnose(facts)
    assert found.cause == "works"
    assert "RTX 4090" in found.verdict
    assert "2 devices" in found.why
    assert "GTX 970" in found.why


def test_gpus_that_are_hidden_beside_one_that_works_are_counted() -> None:
    facts = replace(
        CASES["works"],
        nvidia_gpus=("a", "b", "c"),
        variables=(("CUDA_VISIBLE_DEVICES", "1"),),
    )
    assert "see 2 of this machine" in diagnose(facts).why


def setting(value: str, name: str = "CUDA_VISIBLE_DEVICES") -> dict[str, Any]:
    return {"variables": ((name, value),)}


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


@pytest.mark.parametrize("name", HIDING["ROCm"])
def test_rocm_has_its_own_variables(name: str) -> None:
    facts = replace(CASES["rocm_failed"], **setting("-1", name))
    assert name in diagnose(facts).verdict


def test_a_machine_without_gpu_is_not_a_failure() -> None:
    found = diagnose(CASES["no_gpu"])
    assert found.state == "cpu"
    assert not found.command
    assert "That's fine" in found.why


def test_windows_is_told_where_its_build_comes_from() -> None:
    here = diagnose(replace(CASES["cpu_build"], system="Windows"))
    assert "On Windows" in here.why
    assert "On Windows" not in diagnose(CASES["cpu_build"]).why


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


# Where it says "...", hypothesis goes by the type.
FACTS = st.builds(
    Facts,
    system=st.sampled_from(["Linux", "Darwin", "Windows", "Java"]),
    machine=st.sampled_from(["x86_64", "arm64", ""]),
    torch=WORDS,
    cuda=WORDS,
    hip=st.sampled_from(["", "6.4"]),
    xpu=st.sampled_from(["", "2025"]),
    mps=...,
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
    kfd=...,
    kfd_readable=...,
    render_node=...,
    container=...,
    wsl=...,
    rosetta=...,
)


@settings(max_examples=1000)
@given(facts=FACTS)
def test_any_facts_have_one_diagnosis(facts: Facts) -> None:
    found = diagnose(facts)
    assert found == diagnose(facts)
    assert found.cause in CASES
    assert "http:" not in found.way_out
    assert "None" not in found.verdict
    for text in (found.verdict, found.why, found.way_out):
        assert len(text) > 20
        assert text == text.strip()
        assert "  " not in text
    assert "\n" not in found.command
    if found.state == "cpu":
        assert "trains on the CPU, because" in found.verdict
