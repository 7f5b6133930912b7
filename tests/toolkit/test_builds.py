"""The table of PyTorch's builds, compared with the installed torch."""

import datetime
import re
from pathlib import Path

import pytest
import torch

from to_device import builds
from to_device.builds import runs_on, version
from to_device.explain.explainer import knowledge, of_cause

TORCHS = torch.cuda.PYTORCH_RELEASES_CODE_CC


def test_the_table_knows_every_build_that_the_installed_torch_knows():
    known = builds.table()["cuda"]
    for cuda, machines in TORCHS.items():
        for machine, codes in machines.items():
            ours = set(known.get(cuda, {}).get(machine, ()))
            assert ours == codes, (cuda, machine)
    for cuda in known.keys() - TORCHS.keys():
        assert version(torch.__version__)[:2] != version(builds.table()["torch"]), cuda
    assert builds.table()["read"] <= datetime.date.today()


@pytest.mark.parametrize("cuda", ["13.0", "13.2"])
def test_a_gpu_runs_the_code_that_torch_says_it_runs(cuda, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", cuda)
    runs = torch.cuda._code_compatible_with_device
    codes = torch.cuda.DEVICE_REQUIREMENT
    for code in codes:
        for gpu in codes:
            expected = runs(gpu, code)
            if cuda == "13.2" and gpu in (53, 62):  # CUDA 13 has no code for these
                continue
            ours = runs_on((f"sm_{code}",), f"sm_{gpu}", version(cuda))
            assert ours == expected, (code, gpu)


def test_the_builds_that_texts_name_exist():
    versions = [*builds.table()["cuda"], *builds.table()["ended"]]
    exist = {"cpu", "nightly", "xpu", *map(builds.index, versions)}
    answers = [of_cause(cause) for cause in knowledge().causes.values()]
    texts = [f"{a.why}\n{a.check}\n{a.change}" for a in answers]
    assert not [field for field in builds.fields() if f"{{{field}}}" in "".join(texts)]
    for folder in ("content", "core", "docs", "pages", "to_device"):
        for path in Path(folder).rglob("*"):
            if path.suffix in (".toml", ".md", ".py") and path.name != "errors.toml":
                texts.append(path.read_text("utf-8"))
    named = re.findall(r"\b(cu1\d\d|rocm\d[\d.]*)\b", "\n".join(texts))
    named += re.findall(r"download\.pytorch\.org/whl/(\w+)", "\n".join(texts))
    assert {name for name in named if name} <= exist
    drivers = re.findall(r"\bdrivers? (?:before )?(\d{3})\b", "\n".join(texts))
    assert set(drivers) == {builds.fields()["driver"]}


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [("580.95.05", "13"), ("570.1", "12"), ("470.2", "11"), ("390", "10"), ("", "")],
)
def test_a_driver_tells_the_cuda_that_it_runs(driver, cuda):
    assert builds.cuda_of(driver) == cuda


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("NVIDIA GeForce GTX 960", 52),
        ("NVIDIA GeForce GTX 960M", 50),
        ("NVIDIA GeForce GTX 980M", 52),
        ("NVIDIA GeForce MX130", 50),
        ("NVIDIA GeForce MX250", 61),
        ("NVIDIA GeForce RTX 2050", 86),
        ("NVIDIA GeForce RTX 2060", 75),
        ("NVIDIA B200", 100),
        ("NVIDIA B300", 103),
    ],
)
def test_a_name_tells_the_capability(name, code):
    assert builds.capability(name) == code


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("/usr/lib/python3.8/site-packages/torch", "3.8"),
        ("C:\\Python39\\lib", "3.9"),
        ("torch-2.4.1-cp310-cp310-linux_x86_64.whl", "3.10"),
        ("Python version: 3.8.10 (default)", "3.8"),
        ("Python 3.8.10", "3.8"),
        ("python 2.7 and pytorch 3", ""),
    ],
)
def test_a_text_names_its_python(text, python):
    assert builds.python(text) == python


@pytest.mark.parametrize(
    ("python", "code", "driver", "wheel"),
    [
        ("3.8", 0, (), "cu124"),
        ("3.9", 0, (), "cu128"),
        ("3.9", 61, (), "cu126"),
        ("3.8", 120, (), builds.fields()["wheel"]),  # which needs a newer Python
        ("3.8", 75, (11, 4), builds.fields()["ended_wheel"]),
        ("3.12", 0, (), builds.fields()["wheel"]),
    ],
)
def test_an_old_python_gets_a_build_that_exists_for_it(python, code, driver, wheel):
    assert builds.for_gpu(code, driver=driver, python=python)[0] == wheel
