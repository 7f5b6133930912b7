"""The command `to-device dryrun`."""

import argparse
import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from itertools import accumulate, zip_longest
from pathlib import Path

from to_device import gpus
from to_device.dryrun import launchers, shadows
from to_device.dryrun.report import (
    ASKS,
    NOT_SIMULATED,
    OK,
    SCRIPT_ERROR,
    Report,
    Request,
    terminal_lines,
)
from to_device.errors import ExplainedError, Parser, end_with_pipe, quoted

HELP = """Find out, on a machine without CUDA, whether a script would run on CUDA.

    to-device dryrun train.py --epochs 10 --steps 3 --memory 8GB
    to-device dryrun train.py --gpu T4
    to-device dryrun train.py --without-values --gpu H100
    to-device dryrun notebook.ipynb
    to-device dryrun -m package.train --epochs 10
    to-device dryrun torchrun --nproc-per-node 4 train.py
    to-device dryrun - < train.py

Other options are passed to the script, and so is everything after "--". After the
script's name, an option below is the script's own if the script has one of this name
(--gpu: if an index follows) or if it has one dash; before it, each is the dry run's. If
the script asks for input, it gets what is piped in. The exit status is 0 without a
device error, 1 with one, 2 if the script fails for another reason or can't be read, and
3 if the simulated device can't tell.
"""
FOLDER = str(Path(__file__).parents[2])  # where the package to_device is
FLAGS = ("--json", "--without-values")  # options without a value
NAMED = (*FLAGS, "--steps", "--memory", "--seconds")  # which a script may have as well
IMPORTED = re.compile(r"(?m)^[ \t]*(?:from|import) +([.\w]+)")
# What follows a script's own `--gpu`: indices such as 0 or 0,1, another option, nothing
NO_NAME = re.compile(r"(\d+(,\d+)*|-.*)?")
OF_SCRIPT = "--of-script"  # marks a script's own option that is like one of ours
# Libraries that make a script's options out of its variables' names
NAMERS = re.compile(
    r"(?m)^[ \t]*(from|import) (fire|tyro|simple_parsing|jsonargparse|draccus)\b"
    "|HfArgumentParser|TrlParser|LightningCLI"
)
MOST_FILES = 200  # in so many files of its own, a script's options are looked for
SHARE_OF_MEMORY = 0.8  # a fifth of the free memory is left to other programs
# What an operating system, torch, and Python say when the machine's memory is full
NO_ROOM = re.compile("DefaultCPUAllocator|MemoryError|out of memory")
# What fails if a run finds the files of an earlier one
OF_FILES = {"FileExistsError", "FileNotFoundError", "IsADirectoryError", "OSError"}
WITHOUT_LIMIT = 1 << 40  # bytes: the device's memory where no size is given
KILLED = -9  # the exit status of a process that the system ended for its memory
OUT_OF_MEMORY = "The system ended the dry run, perhaps for want of memory."
CLOCK_FACTOR = 4  # a script that sleeps ends after so many times its --seconds
CHUNK, MOST_CHUNKS = 1 << 16, 64  # of what is piped in, so many bytes, so often
MOST_TOLD = 200  # characters of an error, in a note
SECONDS_MORE = 30  # time for the process to start, and to write the report


def size(text: str) -> int:
    """Bytes of a text such as "8GB", "64 MiB" or "1500000"."""
    match = re.fullmatch(r"([\d.]+)\s*([KMG]?)(i?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a size such as 8GB, not {text!r}")
    number, unit, binary = match.groups()
    factor = 1024 if binary else 1000
    return int(float(number) * factor ** " KMG".index(unit.upper() or " "))


def options(arguments: Sequence[str], prog: str) -> argparse.Namespace:
    """This command's options; `arguments` in them are the script's own.

    `doubtful` are those that the script got, although this command has them, too.
    """
    parser = Parser(prog, description=HELP, allow_abbrev=False)
    parser.add_argument(
        "script",
        metavar="SCRIPT|NOTEBOOK|-m MODULE|-",
        help="what to run; - reads a script from a pipe",
    )
    parser.add_argument("--steps", type=int, default=3, help="steps to examine")
    parser.add_argument("--memory", type=size, help="the GPU's memory, such as 8GB")
    parser.add_argument("--gpu", help="a GPU to stand in for, such as T4")
    parser.add_argument(
        "--without-values",
        action="store_true",
        help="compute sizes alone, for a model that doesn't fit this machine",
    )
    parser.add_argument("--seconds", type=float, default=60, help="the processor time")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    arguments, environment = list(arguments), dict[str, str]()
    # As for python, -m counts only before a script's name: later, it is the script's.
    first = 0
    while first < len(arguments) and re.match("--[a-z]", arguments[first]):
        is_flag = arguments[first] in FLAGS or "=" in arguments[first]
        first += 1 if is_flag else 2
    if launched := launchers.read(arguments[first:]):
        script, environment = launched
        own = 2 if script[0] == "-m" else 1  # what comes after the script is its own
        arguments[first:] = [*script[:own], "--", *script[own:]]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    is_module = arguments[first:end][:1] == ["-m"]
    if is_module:
        del arguments[first]
        end -= 1
    name = arguments[first] if first < end else ""
    first += 1  # what comes after the script's name
    names = [part.partition("=")[0] for part in arguments[first:end]]
    doubtful = sorted({*names} & {*NAMED})
    if doubtful:
        own_names = own_options(name, is_module)
        doubtful = [option for option in doubtful if option in own_names]
    arguments[first:end] = marked(arguments[first:end], doubtful)
    ours, of_script = parser.parse_known_args(arguments[:end])
    ours.is_module, ours.environment, ours.doubtful = is_module, environment, doubtful
    of_script = [part.removeprefix(OF_SCRIPT) for part in of_script]
    ours.arguments = of_script + arguments[end + 1 :]
    return ours


def own_options(script: str, is_module: bool) -> set[str]:
    """Which options of NAMED a script's own files have, as far as their text tells.

    Read are the script and what it imports from its folder or the current one.
    """
    try:
        waiting = [find(script)[1] if is_module else Path(script)]
    except ExplainedError:  # `read` says so
        return set()
    folders, texts = [waiting[0].parent, Path.cwd()], dict[Path, str]()
    while waiting and len(texts) < MOST_FILES:
        file = waiting.pop()
        with suppress(OSError, UnicodeDecodeError):
            texts[file] = file.read_text("utf-8")
        modules = (m.strip(".") for m in IMPORTED.findall(texts.get(file, "")))
        for module in filter(None, modules):
            for folder in (*folders, file.parent):
                place = folder.joinpath(*module.split("."))
                beside = place.with_suffix(".py"), place / "__init__.py"
                waiting += [f for f in beside if f.is_file() and f not in texts]
    text = "\n".join(texts.values())
    makes = NAMERS.search(text)  # options, of the names of variables
    return {
        name
        for name in NAMED
        if re.search(f"[\"']{name}[\"'/=]", text)
        or (makes and re.search(rf"\b{name.strip('-').replace('-', '_')}\s*[:=]", text))
    }


def marked(arguments: Sequence[str], own: Collection[str]) -> list[str]:
    """The options after a script's name; those in `own` begin with a mark.

    A `--gpu` with an index gets one, too: our own has a GPU's name there. So does what
    begins with one dash, which argparse would take for `-h` if an h follows.
    """
    result = []
    for part, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        name, has_value, value = part.partition("=")
        is_index = NO_NAME.fullmatch(value if has_value else following)
        is_own = name in own or (name == "--gpu" and is_index)
        is_short = re.match("-[^-]", part)
        result.append(OF_SCRIPT + part if is_own or is_short else part)
    return result


def piped(seconds: float = 1.0) -> bytes:
    """What is piped in for the script, whole, since each dry run reads it anew.

    A pipe that nobody closes, as in a CI, is read for so many seconds, and a terminal
    isn't read at all.
    """
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return b""
    parts = list[bytes]()

    def read() -> None:
        with suppress(OSError, ValueError):
            while len(parts) < MOST_CHUNKS and (part := os.read(source, CHUNK)):
                parts.append(part)

    try:
        source = sys.stdin.fileno()
    except OSError:  # a notebook's or a test's own
        return b""
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(seconds)
    return b"".join(parts)


def find(module: str) -> tuple[str, Path]:
    """A module's full name and its file; for a package, those of its `__main__`.

    No package is imported, since its imports have to meet the simulated device.
    Raises ExplainedError if there is no such module.
    """
    folders: Sequence[str] = [os.getcwd(), *sys.path[1:]]
    file = ""
    for name in accumulate(module.split("."), "{}.{}".format):
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            raise ExplainedError(f"There is no module {name} here or in this Python.")
        file, folders = spec.origin or "", spec.submodule_search_locations or ()
    if folders:
        return find(f"{module}.__main__")
    if not file.endswith(".py"):
        raise ExplainedError(f"The module {module} isn't written in Python.")
    return module, Path(file)


def read(script: str, is_module: bool) -> tuple[str, str, str]:
    """The file's name, its text, and the module's full name.

    Raises ExplainedError if the text can't be read.
    """
    module = ""
    if is_module:
        module, file = find(script)
        script = str(file)
    elif script == "-":
        return "<stdin>", sys.stdin.buffer.read().decode("utf-8", "replace"), ""
    try:
        return script, Path(script).read_text("utf-8"), module
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", error)
        raise ExplainedError(f"{script} can't be read: {why}") from None


def available_memory() -> int:
    """Bytes of memory that programs can get now, or a cautious guess of them."""
    try:
        import psutil

        return psutil.virtual_memory().available
    except ImportError:
        pages = getattr(os, "sysconf_names", {})
        if "SC_AVPHYS_PAGES" in pages:
            return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return 4 << 30


def dry_run(request: Request, given: bytes = b"") -> dict:
    """The report of a script whose standard input has these bytes."""
    path = os.pathsep.join([FOLDER, *filter(None, [os.environ.get("PYTHONPATH")])])
    text = json.dumps(dataclasses.asdict(request)) + "\n"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "to_device.dryrun.child"],
            input=text.encode() + given,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            timeout=request.seconds + SECONDS_MORE,
        )
        return json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        why = f"The dry run did not finish within {request.seconds:.0f} s."
    except ValueError:
        why = f"The dry run exited with status {done.returncode} and wrote no report."
        if done.returncode == KILLED and request.values:
            why = OUT_OF_MEMORY
    return Report(NOT_SIMULATED, notes=[why]).plain()


def once_more(first: dict, request: Request, given: bytes) -> dict:
    """The report of another dry run of a script, in which it may make folders anew.

    If it fails before its first step or at a file, where the first didn't, perhaps for
    what the first has left behind, the first report tells more. But a first one that
    went on without input tells less.
    """
    report = dry_run(dataclasses.replace(request, made=first["made"]), given)
    failure, steps = report["failure"], report["steps"]
    meets_more = failure and (not steps or failure["kind"] in OF_FILES)
    is_sooner = meets_more and steps < first["steps"]
    went_on = ASKS in first["notes"] and not first["failure"]
    return first if is_sooner and not went_on else report


def in_words(early: dict) -> str:
    """The note on a failure that came early, if no run of the whole loop decided."""
    at = early["line"]
    place = f"line {at['line']} of {os.path.basename(at['file'])}" if at else "torch"
    what = quoted(f"{early['kind']}: {early['message']}", MOST_TOLD)
    return (
        "When the dry run ran parts of a loop before their turn, the script failed in "
        f"{place} with {what}. If a full run gets there in the same way, it fails, too."
    )


def ran_out(report: dict) -> bool:
    """Whether memory ran out: the simulated device's, or this machine's."""
    failure = report["failure"]
    says = f"{failure['kind']}: {failure['message']}" if failure else ""
    return bool(NO_ROOM.search(says)) or OUT_OF_MEMORY in report["notes"]


def main(arguments: Sequence[str] | None = None, prog: str = "to-device dryrun") -> int:
    """Returns the exit status: see HELP. Raises ModuleNotFoundError without torch."""
    try:
        ours = options(sys.argv[1:] if arguments is None else arguments, prog)
    except ExplainedError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    os.environ.update(ours.environment)
    if names := " and ".join(ours.doubtful):
        print(
            f"{prog}: {ours.script} has {names} itself and gets this. To give the dry "
            "run its own, put it before the script's name.",
            file=sys.stderr,
        )
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("there is no torch", name="torch")
    try:
        gpu = gpus.find(ours.gpu) if ours.gpu else None
        if gpu and ours.memory:
            raise ExplainedError("Give --gpu or --memory, not both.")
        name, text, module = read(ours.script, ours.is_module)
    except ExplainedError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        return 2
    most = int(available_memory() * SHARE_OF_MEMORY)
    limit = gpu.usable[1] if gpu else ours.memory
    request = Request(
        name,
        text,
        ours.arguments,
        module,
        steps=ours.steps,
        memory=ours.memory,
        gpu=gpu.title if gpu else "",
        seconds=CLOCK_FACTOR * ours.seconds,
        processor_seconds=ours.seconds,
        capacity=min(limit or most, most),
    )
    sizes_alone = dataclasses.replace(
        request, values=False, capacity=limit or WITHOUT_LIMIT
    )
    is_small = limit is not None and limit <= most  # the limit is what ran out
    request = sizes_alone if ours.without_values else request
    if why_not := shadows.why_no_torch(name, module):
        report = Report(SCRIPT_ERROR, notes=[why_not]).plain()
    else:
        report = dry_run(request)
    answers = b""
    if ASKS in report["notes"] and ours.script != "-":
        # Only now: what is piped in may be meant for another command, as in a loop.
        answers = piped()
        report = once_more(report, request, answers) if answers else report
    if request.values and ran_out(report) and not is_small:
        report = once_more(report, request := sizes_alone, answers)
    early = None  # a failure in or after a part that ran before its turn
    if report["fails_after_visit"]:
        early = report["failure"]
        request = dataclasses.replace(request, visits=False)
        report = once_more(report, request, answers)
    is_decided = early is None or report["status"] != OK
    if report["fails_after_loop"] or not is_decided:
        whole = once_more(report, dataclasses.replace(request, shortens=False), answers)
        decides = whole["failure"] or whole["status"] == OK
        if decides and whole is not report:
            report = whole
        elif early and not is_decided:
            report["notes"].append(in_words(early))
    if limit and ran_out(report):  # what does the script need without a limit?
        more = dataclasses.replace(request, capacity=most)
        unlimited = once_more(report, more, answers) if request.values else report
        if ran_out(unlimited):
            least = dataclasses.replace(sizes_alone, capacity=WITHOUT_LIMIT)
            unlimited = once_more(report, least, answers)
        report |= {part: unlimited[part] for part in ("memory", "fit")}
    end_with_pipe()
    print(json.dumps(report) if ours.json else "\n".join(terminal_lines(report)))
    return report["status"]
