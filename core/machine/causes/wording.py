"""What several causes say: parts of sentences, commands, addresses."""

from collections.abc import Callable
from itertools import takewhile

from core.machine.results import Facts, VisibleDevice

SELECTOR = "https://pytorch.org/get-started/locally/"
WHEELS = "https://download.pytorch.org/whl"
ROCM_GPUS = (
    "https://rocm.docs.amd.com/projects/install-on-linux/en/latest/reference/"
    "system-requirements.html"
)
XPU_GUIDE = "https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html"


def version(text: str) -> tuple[int, ...]:
    """(2, 15, 0) for "2.15.0+cu132"; as far as there are numbers."""
    parts = text.partition("+")[0].split(".")
    return tuple(map(int, takewhile(str.isdecimal, parts)))


def newest_release(
    facts: Facts, fits: Callable[[tuple[int, ...], tuple[str, ...]], bool]
) -> str:
    """The newest CUDA version of PyTorch's wheels that fits; "" where none does.

    `fits` gets the version and the architectures that the wheel has code for.
    """
    for release, architectures in reversed(facts.releases):
        if version(release) and fits(version(release), architectures):
            return release
    return ""


def install_release(cuda: str) -> str:
    """The command that installs the wheel for a CUDA version; "" for none."""
    return install(f"cu{cuda.replace('.', '')}") if cuda else ""


def install(index: str) -> str:
    """The command that installs torch from one of PyTorch's indexes."""
    return (
        "python -m pip install --force-reinstall torch torchvision "
        f"--index-url {WHEELS}/{index}"
    )


def shown(setting: tuple[str, str]) -> str:
    """An environment variable and its value."""
    return f"`{setting[0]}={plain(setting[1])}`"


def said(facts: Facts) -> str:
    """What torch said when asked for an accelerator, as a sentence, if it did."""
    return f"PyTorch said: {quote(facts.complaint)}" if facts.complaint else ""


def quote(text: str) -> str:
    """As code, so that nothing in it is taken for Markdown."""
    return f"`{plain(text)}`" if text.strip() else "nothing."


def name_of(device: VisibleDevice) -> str:
    return plain(device.name) or "GPU"


def torch_of(facts: Facts) -> str:
    return f"torch {plain(facts.torch)}".strip()


def plain(text: str) -> str:
    return " ".join(text.replace("`", "'").split())
