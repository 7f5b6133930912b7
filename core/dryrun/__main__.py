"""Find out, on a machine without CUDA, whether a script would run on CUDA.

    python -m core.dryrun train.py --epochs 10 --steps 3 --memory 8GB

Other options are passed to the script, and so is everything after "--".
"""

import argparse
import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil

from core.dryrun.report import NOT_SIMULATED, Report, Request, terminal_lines
from core.errors import Parser, end_with_pipe

ROOT = str(Path(__file__).parents[2])
SHARE_OF_MEMORY = 0.8  # a fifth of the free memory is left to other programs
SECONDS_MORE = 30  # time for the process to start, and to write the report


def size(text: str) -> int:
    """Bytes of a text such as "8GB", "64 MiB" or "1500000"."""
    match = re.fullmatch(r"([\d.]+)\s*([KMG]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a size such as 8GB, not {text!r}")
    number, unit, binary = match.groups()
    factor = 1024 if binary else 1000
    return int(float(number) * factor ** " KMG".index(unit.upper() or " "))


def options() -> tuple[argparse.Namespace, list[str]]:
    parser = Parser("python -m core.dryrun", description=__doc__, allow_abbrev=False)
    parser.add_argument("script", type=Path, help="a script or a notebook")
    parser.add_argument("--steps", type=int, default=3, help="steps to examine")
    parser.add_argument("--memory", type=size, help="the GPU's memory, such as 8GB")
    parser.add_argument("--seconds", type=float, default=60, help="the time limit")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    ours, of_script = parser.parse_known_args(arguments[:end])
    return ours, of_script + arguments[end + 1 :]


def dry_run(request: Request) -> dict:
    path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    text = json.dumps(dataclasses.asdict(request)) + "\n"
    try:
        done = subprocess.run(
            [sys.executable, "-m", "core.dryrun.child"],
            input=text.encode(),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            timeout=request.seconds + SECONDS_MORE,
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        why = f"The dry run did not finish within {request.seconds:.0f} s."
    except ValueError:
        why = f"The dry run exited with status {done.returncode} and wrote no report."
    return Report(NOT_SIMULATED, notes=[why]).plain()


def main() -> None:
    ours, of_script = options()
    try:
        text = ours.script.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", error)
        sys.exit(f"{ours.script} can't be read: {why}")
    most = int(psutil.virtual_memory().available * SHARE_OF_MEMORY)
    request = Request(
        *(str(ours.script), text, of_script),
        *(ours.steps, ours.memory, ours.seconds),
        capacity=ours.memory or most,
    )
    report = dry_run(request)
    failure = report["failure"]
    if ours.memory and failure and "out of memory" in failure["message"]:
        unlimited = dry_run(dataclasses.replace(request, capacity=most))
        report["memory"] = unlimited["memory"]  # what the script needs without a limit
    end_with_pipe()
    print(json.dumps(report) if ours.json else "\n".join(terminal_lines(report)))
    sys.exit(report["status"])


if __name__ == "__main__":
    main()
