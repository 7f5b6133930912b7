"""Every cause of "no GPU", from facts that no machine here has to have."""

from dataclasses import replace

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


@pytest.mark.parametrize(("kind", "build"), [("mps", "mps"), ("xpu", "xpu")])
def test_other_accelerators_work_too(kind: str, build: str) -> None:
    facts = Facts(**{build: True if build == "mps" else "2025"}, accelerator=kind)
    facts = replace(facts, seen=(VisibleDevice("it"),), vendors=("Intel", "NVIDIA"))
    assert diagnose(facts).state == "accelerator"
    assert kind.upper() in diagnose(facts).verdict


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
    assert "hides 2 more" in diagnose(facts).why


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("", "hidden"),
        ("-1", "hidden"),
        ("1", "hidden"),  # there is one GPU, number 0
        ("GPU-…", "hidden"),  # not found, else torch would see it
        ("0", "cuda_failed"),
        ("0,1", "cuda_failed"),
    ],
)
def test_a_variable_hides_only_what_it_does_not_name(value: str, cause: str) -> None:
    facts = replace(CASES["hidden"], variables=(("CUDA_VISIBLE_DEVICES", value),))
    assert diagnose(facts).cause == cause


@pytest.mark.parametrize("name", HIDING["ROCm"])
def test_rocm_has_its_own_variables(name: str) -> None:
    facts = replace(CASES["rocm_failed"], variables=((name, "-1"),))
    assert name in diagnose(facts).verdict
    nvidia = replace(CASES["cuda_failed"], variables=((name, "-1"),))
    expected = "hidden" if name == "CUDA_VISIBLE_DEVICES" else "cuda_failed"
    assert diagnose(nvidia).cause == expected


def test_a_variable_is_not_blamed_where_there_is_no_gpu() -> None:
    facts = replace(CASES["no_gpu"], variables=(("CUDA_VISIBLE_DEVICES", ""),))
    assert diagnose(facts).cause == "no_gpu"


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
    ("torch", "macos", "cause"),
    [
        ("2.15.0", "14.0", "mps_unavailable"),
        ("2.9.0", "13.7", "macos_too_old"),
        ("2.8.0", "13.7", "mps_unavailable"),
        ("2.8.0", "12.7", "macos_too_old"),
    ],
)
def test_mps_wants_a_macos(torch: str, macos: str, cause: str) -> None:
    facts = replace(CASES["mps_unavailable"], torch=torch, macos=macos)
    assert diagnose(facts).cause == cause


@pytest.mark.parametrize(
    ("driver", "cause"),
    [("12.9", "driver_too_old"), ("13.0", "cuda_failed"), ("14.1", "cuda_failed")],
)
def test_a_driver_runs_its_major_version_and_all_before(
    driver: str, cause: str
) -> None:
    facts = replace(CASES["cuda_failed"], cuda="13.2", driver_cuda=driver)
    assert diagnose(facts).cause == cause


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
SEEN = st.builds(VisibleDevice, name=WORDS, architecture=WORDS, complaint=WORDS)
FACTS = st.builds(
    Facts,
    system=st.sampled_from(["Linux", "Darwin", "Windows", "Java"]),
    machine=st.sampled_from(["x86_64", "arm64", ""]),
    torch=WORDS,
    cuda=WORDS,
    hip=st.sampled_from(["", "6.4"]),
    xpu=st.sampled_from(["", "2025"]),
    mps=st.booleans(),
    architectures=st.lists(WORDS, max_size=2).map(tuple),
    releases=st.lists(
        st.tuples(WORDS, st.lists(WORDS, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
    accelerator=st.sampled_from(["", "", "cuda", "mps", "xpu"]),
    seen=st.lists(SEEN, max_size=2).map(tuple),
    complaint=WORDS,
    vendors=st.lists(st.sampled_from(["NVIDIA", "AMD", "Intel"]), max_size=3).map(
        tuple
    ),
    nvidia_gpus=st.lists(WORDS, max_size=2).map(tuple),
    nvidia_driver=WORDS,
    driver_cuda=WORDS,
    macos=WORDS,
    variables=st.lists(
        st.tuples(st.sampled_from(sum(HIDING.values(), ())), WORDS), max_size=2
    ).map(tuple),
    **{
        name: st.booleans()
        for name in (
            "kfd",
            "kfd_readable",
            "render_node",
            "container",
            "wsl",
            "rosetta",
        )
    },
)


@settings(max_examples=1000, deadline=None)
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
