"""The command `to-device diagnose`: this machine, or another machine's report."""

import json
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import indent

from to_device.diagnose.collect_env import LINES, diagnose_report
from to_device.diagnose.diagnosis import diagnose
from to_device.diagnose.machine import Diagnosis
from to_device.errors import ExplainedError, Parser, end_with_pipe

LOUD = "*** There is a GPU here, but torch can't use it. ***"
HELP = """Find out why torch doesn't use a GPU on this machine, or on another.

    to-device diagnose               this machine; needs torch
    to-device diagnose report.txt    another one, from what these lines print there:

""" + indent(LINES, "        ")


def main(
    arguments: Sequence[str] | None = None, prog: str = "to-device diagnose"
) -> int:
    """Returns the exit status: 0 if a GPU works, 1 if not, 2 without a diagnosis."""
    parser = Parser(prog, description=HELP)
    parser.add_argument(
        "file", nargs="?", help="another machine's report, or - to read stdin"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    end_with_pipe()
    try:
        diagnosis = of_file(options.file) if options.file else of_this_machine()
    except ExplainedError as error:
        print(error, file=sys.stderr)
        return 2
    text = json.dumps(asdict(diagnosis), indent=2) if options.json else plain(diagnosis)
    print(text)
    return 0 if diagnosis.state == "accelerator" else 1


def of_this_machine() -> Diagnosis:
    try:
        from to_device.diagnose.facts import probe
    except ModuleNotFoundError as error:
        message = f"Python can't import {error.name}. Run: python -m pip install torch"
        raise ExplainedError(message) from None
    return diagnose(probe())


def warn() -> None:
    """Warn if this machine has a GPU that torch can't use, with what helps.

    It says nothing if torch sees a GPU, or if there is none. Raises ExplainedError
    before torch 2.6.
    """
    import torch

    if hasattr(torch, "accelerator") and torch.accelerator.is_available():
        return
    diagnosis = of_this_machine()
    if diagnosis.unused_gpu:
        warnings.warn(plain(diagnosis), stacklevel=2)


def of_file(name: str) -> Diagnosis:
    """Diagnose the report in a file, or on standard input for "-"."""
    try:
        file = sys.stdin.fileno() if name == "-" else Path(name)
        with open(file, encoding="utf-8", errors="replace") as report:
            return diagnose_report(report.read())
    except OSError as error:
        raise ExplainedError(f"{name} can't be read: {error.strerror}") from None


def plain(diagnosis: Diagnosis) -> str:
    """The diagnosis without Markdown, and with the command on its own lines."""
    parts = [diagnosis.verdict, diagnosis.why, diagnosis.way_out, diagnosis.command]
    if diagnosis.unused_gpu:
        parts.insert(0, LOUD)
    text = "\n\n".join(part for part in parts if part)
    return re.sub(r"\[([^]]+)\]\(([^)]+)\)", r"\1 (\2)", text).replace("`", "")
