"""Run all remedies in this process, and print how each half ended, as JSON.

    python -m tests.toolkit.explain.remedies.run

The other modules of this folder have a small program for each error that can be
raised here. A function is named after the entry in errors.toml, and has two halves, as
the app's mistakes do: lines with "# broken" are only in the one that makes the error,
and lines with "# fixed" only in the mended one. Both end with what the program is for.
Those in `silent`, `questions`, `learning`, `forums`, and `networks` raise no error of
torch's: without the remedy, what they are for fails. `reasons.toml` says why the other
entries have no program.

The output has, for each entry's name, the texts of its two halves: the traceback in
CUDA's words with all warnings before it, or "" for neither.
"""

import importlib
import json
import os
import sys
import tempfile
import traceback
import warnings
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FunctionType

import torch
import torch.distributed as dist

from core.halves import HALVES, define
from to_device.sim import simulation

MODULES = (
    "devices",
    "memory",
    "checkpoints",
    "shapes",
    "modules",
    "graphs",
    "export",
    "processes",
    "silent",
    "questions",
    "learning",
    "forums",
    "networks",
)


def programs() -> dict[str, dict[str, FunctionType]]:
    """For each entry's name, its halves."""
    found = {}
    for name in MODULES:
        module = vars(importlib.import_module(f"{__package__}.{name}"))
        define(module)
        names = [name.removeprefix("fixed_") for name in module if "fixed_" in name]
        found |= {n: {half: module[f"{half}_{n}"] for half in HALVES} for n in names}
    return found


@contextmanager
def fresh():
    """An empty folder, and torch's settings as they were."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            torch.manual_seed(0)
            yield
        finally:
            os.chdir(before)
            torch.set_default_device(None)
            if dist.is_initialized():
                dist.destroy_process_group()


def ended(program: FunctionType) -> str:
    """What the program said before it ended."""
    said = []
    with warnings.catch_warnings(record=True) as caught, fresh():
        warnings.simplefilter("always")
        try:
            program(torch.device("sim"))
        except Exception as error:
            frames = error.__traceback__.tb_next
            said = traceback.format_exception(type(error), error, frames)
    messages = [f"{w.category.__name__}: {w.message}\n" for w in caught]
    return simulation.in_cuda_words("".join([*messages, *said]))


def main() -> None:
    torch.set_num_threads(1)  # the programs are small
    if why_not := simulation.offer():
        print(json.dumps(why_not))
        return
    with redirect_stdout(sys.stderr):
        texts = {
            name: {half: ended(program) for half, program in halves.items()}
            for name, halves in programs().items()
        }
    print(json.dumps(texts))


if __name__ == "__main__":
    main()
