"""The names and options that texts show exist in the installed torch."""

import importlib
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from torch._logging._internal import log_registry
from torch.distributed.run import get_args_parser

from to_device.explain.explainer import knowledge, of_cause

# Names that only other systems, other builds, or other packages have.
ELSEWHERE = {"torch.sim", "torch.py", "torch_xla.device", "torch.utils.tensorboard"}


def texts() -> str:
    answers = [of_cause(cause) for cause in knowledge().causes.values()]
    found = [f"{a.why}\n{a.check}\n{a.change}" for a in answers]
    for folder in ("content", "core", "docs", "to_device"):
        for kind in ("*.toml", "*.md"):
            files = Path(folder).rglob(kind)
            found += [f.read_text("utf-8") for f in files if f.name != "errors.toml"]
    return "\n".join([*found, Path("README.md").read_text("utf-8")])


def exists(name: str) -> bool:
    """Whether a dotted name is a module or something in one."""
    parts = name.split(".")
    thing = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if hasattr(thing, part):
            thing = getattr(thing, part)
        else:
            try:
                thing = importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
    return True


def test_every_name_of_torch_exists():
    names = set(re.findall(r"(?<![\w./-])torch(?:\.[A-Za-z_]\w*)+", texts()))
    missing = {name for name in names - ELSEWHERE if not exists(name)}
    assert missing == set()


def test_every_option_of_torchrun_exists():
    commands = re.findall(r"\btorchrun ((?:--[\w-]+(?:[= ][\w.-]+)? )+)", texts())
    assert len(commands) > 5
    for command in commands:
        get_args_parser().parse_args([*shlex.split(command), "train.py"])


def test_every_option_of_pip_exists():
    install = pytest.importorskip("pip._internal.commands").create_command("install")
    found = re.findall(r"(?<!uv )\bpip install ((?:[^`\n#;&|\\]|\\\n)+)", texts())
    commands = [text for text in found if text.count('"') % 2 == 0]
    assert len(commands) > 15
    for command in commands:
        install.parse_args(shlex.split(command))


def test_every_log_of_torch_exists():
    for name in re.findall(r"TORCH_LOGS=\"?\+?(\w+)", texts()):
        assert log_registry.is_log(name) or log_registry.is_artifact(name), name


def test_every_module_that_python_runs_exists():
    modules = set(re.findall(r"python3? -m ([\w.]+)", texts()))
    others = {
        "accelerate",
        "bitsandbytes",
        "deepspeed",
        "ipykernel",
        "pip",
        "spacy",
        "venv",
        "xformers",
    }
    ours = [name for name in modules if name.partition(".")[0] not in others]
    assert [name for name in ours if importlib.util.find_spec(name) is None] == []


def test_every_file_that_a_text_names_exists():
    places = r"\b(?:core|to_device|pages|content|deploy|docs|tests|tools)(?:/[\w.-]+)+"
    names = set(re.findall(rf"(?<![\w/.-]){places}", texts()))
    names = {name.rstrip(".") for name in names}
    made = {name for name in names if "/sums" in name or name == "deploy/.env"}
    assert {name for name in names - made if not Path(name).exists()} == set()
