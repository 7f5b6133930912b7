"""`python -m tools.accelerator --out DIR`: all that needs an accelerator, tried on it.

Each step runs in a process of its own for a limited time, and keeps what it finds in
DIR/STEP.json as it goes; what it prints is in DIR/log.txt. Started again with the same
folder, it goes on where it was. --tiny tries the script itself, on a CPU too, or
with --device sim on the simulated accelerator. The exit status is 1 where something
failed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Step(NamedTuple):
    """A module beside this one, with a function `run`."""

    seconds: float  # that it may take
    what: str


# By worth: first what can be mended at once, then what takes long to measure.
STEPS = {
    "marked": Step(300, "the tests that are marked gpu"),
    "faults": Step(150, "what goes wrong on a device, through the engine"),
    "pages": Step(90, "what Device, Model and Compare show"),
    "mistakes": Step(240, "the real message of every mistake, and its search"),
    "ladder": Step(540, "the ladder's top: epoch, time to accuracy, roofline"),
    "record": Step(540, "core.bench --record, in parts"),
    "lesson": Step(120, "thirty people on the app at once"),
}
LEAST_SECONDS = 20.0  # for less no step is started
NO_TIME = "There was no time left for it."
PATIENCE = 5.0  # for a step to end by itself


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.accelerator",
        description=__doc__,
        epilog="; ".join(f"{name}: {step.what}" for name, step in STEPS.items()),
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder for what is found")
    add("--only", nargs="+", choices=STEPS, metavar="STEP", help="these, in order")
    add("--seconds", type=float, default=540.0, help="for all of them")
    add("--tiny", action="store_true", help="as little of everything as there is")
    add("--device", default="auto", help="such as sim, which is no accelerator")
    add("--here", action="store_true", help=argparse.SUPPRESS)  # one, in this process
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.here:
        (name,) = given.only
        work(name, given.out, given.tiny, given.seconds, given.device)
        return 0
    deadline = time.monotonic() + given.seconds
    with (given.out / "log.txt").open("a", encoding="utf-8") as log:

        def tell(text: str) -> None:
            print(text, file=log, flush=True)
            print(text, flush=True)

        lines = []
        for name in given.only or STEPS:
            left = min(STEPS[name].seconds, deadline - time.monotonic())
            tell(f"{name}: {STEPS[name].what}, {left:.0f} s at most")
            cut = NO_TIME
            if left >= LEAST_SECONDS:
                cut = start(name, given.out, given.tiny, left, log, given.device)
            lines.append(summary(name, given.out / f"{name}.json", cut))
        tell("\n" + "\n".join(lines))
    return 1 if any(line.split()[1] == "failed" for line in lines) else 0


def start(
    name: str, out: Path, tiny: bool, seconds: float, log: Any, device: str = "auto"
) -> str:
    """Run a step in a process of its own; why it ended early, else nothing."""
    command = [sys.executable, "-m", "tools.accelerator", "--here", "--only", name]
    command += ["--out", str(out), "--seconds", str(seconds - PATIENCE)]
    command += ["--device", device]
    process = subprocess.Popen(
        [*command, *["--tiny"] * tiny],
        cwd=ROOT,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"It was ended after {seconds:.0f} s."
    finally:
        with suppress(ProcessLookupError):  # what it has started ends with it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return f"Its process ended with exit status {status}." if status else ""


def work(
    name: str, out: Path, tiny: bool, seconds: float, device_name: str = "auto"
) -> None:
    """Run a step in this process."""
    from importlib import import_module

    from core import devices
    from to_device.names import SIMULATED
    from to_device.sim import simulation
    from tools.accelerator.step import Results, Setting

    device = devices.resolve(device_name)
    simulation.offer()  # as the app's workers do
    results = Results(out / f"{name}.json", device, tiny)
    setting = Setting(device, out, tiny, time.monotonic() + seconds)
    devices.leave_a_core()
    try:
        step = import_module(f"tools.accelerator.{name}")
    except ImportError as error:
        said = f"What it needs is not installed here: {error}."
        return results.keep("import", "skipped", said)
    results.parts.pop("import", None)  # it may have failed before
    if device.type in ("cpu", SIMULATED):
        results.untried = step.UNTRIED
    step.run(setting, results)


def summary(name: str, path: Path, cut: str) -> str:
    """Done, failed or skipped, in a line, and one for each reason."""
    whole = json.loads(path.read_text("utf-8")) if path.exists() else {"parts": {}}
    parts = whole["parts"]
    count = Counter(each["status"] for each in parts.values())
    told = ", ".join(f"{n} {status}" for status, n in count.items())
    why: dict[str, list[str]] = {}  # the parts that one sentence is about
    for part, each in parts.items():
        if each["status"] != "done":
            said = each["said"] or "it did not come to its end"
            why.setdefault(f"{each['status']}: {said}", []).append(part)
    failed = count["failed"] or count["begun"] or cut not in ("", NO_TIME)
    status = "failed" if failed else "done" if count["done"] else "skipped"
    lines = [f"{name:9} {status:8} {told}{'. ' if told and cut else ''}{cut}"]
    if whole.get("untried"):
        lines.append(f"    Without an accelerator untried: {whole['untried']}")
    lines += [f"    {several(those)} {reason}" for reason, those in why.items()]
    return "\n".join(lines)


def several(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    first, *others = names
    return f"{first} and {len(others)} more" if others else first


if __name__ == "__main__":
    sys.exit(main())
