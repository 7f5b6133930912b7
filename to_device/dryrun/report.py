"""What a dry run finds, and how it is reported."""

import dataclasses
import math
import os
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from to_device.dryrun.script import Line
from to_device.errors import drawable, plain

OK, DEVICE_ERROR, SCRIPT_ERROR, NOT_SIMULATED = range(4)  # exit statuses
SAME = ", the same data in these steps (if it always is, copy it once)"
ASKS = "The script asks for input, and none was piped in."
NO_REPORT = 70  # exit status of a process whose report can't be written
MOST_PRINTED = 64_000  # characters
# The ends of lines as Python's tracebacks count them. str.splitlines also splits at
# other characters.
NEWLINE = re.compile(r"\r\n?|\n")
LARGEST_FACT, DEEPEST_FACT = 50_000, 10  # characters of a fact, and lists in lists
MOST_NAMES = 100  # of facts, and of parts of the memory
LONGEST_NAME = 200  # characters of one of them
LARGEST_REPORT = 500_000  # characters of all that pages may keep of a run
LARGEST = 2**53  # a browser rounds larger whole numbers
LONGEST_TEXT, LONGEST_LIST = 2_000, 200  # characters of a text, and items of a list
VERDICTS = (
    "The dry run found no device error.",
    "The dry run found a device error.",
    "The script fails, but devices aren't the cause.",
    "The dry run could not find out whether the script works on CUDA.",
)
NOTHING_ON_CUDA = (
    "The script put nothing on CUDA, so there was nothing to check. If the script has "
    "an option that turns CUDA on, add it to the command."
)


@dataclass(frozen=True)
class Request:
    name: str  # file name of a script or a notebook; "<stdin>" for a pipe's text
    text: str
    arguments: list[str] = field(default_factory=list)
    module: str = ""  # the module's full name, for `-m`: "package.train"
    steps: int = 3
    memory: int | None = None  # bytes of the GPU, if the user gave a size
    gpu: str = ""  # the title of a GPU in to_device/gpus.toml
    seconds: float = 60.0  # the time limit by the clock
    # A limit of the main thread's processor time, of which a busy machine gives less in
    # a minute. So the machine's other programs don't decide where the script stops.
    processor_seconds: float = 1e9
    # Each of these seconds adds so many to the limit by the clock, which then ends soon
    # what only sleeps, and not what a busy machine lets run now and then.
    clock_factor: float = 0.0
    capacity: int = 4 << 30  # bytes that the simulated device has
    has_magic: bool = False  # True: the script may have commands such as `!pip ...`
    starts_processes: bool = True  # False: data loaders have no workers
    simulates: bool = True  # False: the script runs as on a machine without a GPU
    traceback: bool = True  # True: print the traceback of the script's error
    # True: report values, and count waits and copies in the whole run, not in each step
    names: bool = False
    shortens: bool = True  # False: no loop is left early
    # False: a loop that is left early makes no turn for what only later turns run
    visits: bool = True
    values: bool = True  # False: large tensors have sizes but no values
    # Paths of folders that an earlier dry run has made: making them anew is no error
    made: list[str] = field(default_factory=list)
    # Code to run in the script's module before the script (unobserved) and after it. If
    # `after` makes a dictionary `facts`, the report includes it.
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class Remark:
    """A mistake that raises no error."""

    line: Line
    say: str  # Markdown
    slug: str  # the mistake's name, as in `remarks` of words.toml
    sure: bool  # False: other code may make up for the mistake


@dataclass(frozen=True)
class Value:
    """The newest value at a line of the script: a tensor, or a model's parameters."""

    line: int
    name: str  # the variable's name, or the expression's text
    kind: str  # the name of the value's class
    shape: tuple[int, ...] | None  # None for a model
    dtype: str
    device: str  # "cpu and cuda:0" if a model has tensors in both places


@dataclass(frozen=True)
class Argument:
    """A tensor that the failing line used."""

    name: str  # the variable's name; "" if no variable has the tensor
    device: str
    shape: tuple[int, ...]
    line: Line | None  # where the tensor was made


# A failure's `why` begins with this if the line may stay and another one is missing.
AFTER = "after this line, "


@dataclass(frozen=True)
class Failure:
    kind: str
    message: str  # in CUDA's words
    line: Line | None
    arguments: tuple[Argument, ...] = ()
    culprit: Line | None = None  # the line that has to be changed
    why: str = ""


@dataclass(frozen=True)
class Wait:
    """How often the host waits for the device in each step, and where."""

    line: Line
    cause: str
    times: int


@dataclass(frozen=True)
class Copy:
    """What a line copies in one direction in each step.

    `same` says whether the copied data is the same in each step.
    """

    line: Line
    way: str
    times: int
    bytes: int
    same: bool


@dataclass(frozen=True)
class Growth:
    """A leak: memory, or an autograd graph, that grows with each step."""

    bytes_a_step: int
    line: Line | None  # the line that made or keeps the tensors
    keeps_graph: bool
    also: tuple[Line, ...] = ()  # further lines that keep the graph


@dataclass(frozen=True)
class Memory:
    """Bytes of tensors on the device. Memory that CUDA itself takes isn't counted."""

    peak: int
    parts: dict[str, int]
    limit: int | None
    fits: bool | None
    batch_size: int
    largest_batch: int | None  # an estimate: activations grow with the batch


@dataclass(frozen=True)
class Fit:
    """Whether the tensors fit on a GPU, beside what CUDA itself takes."""

    gpu: str
    usable: tuple[int, int]  # bytes for tensors, the least and the most
    fits: bool | None  # None: with the least they don't fit, with the most they do
    largest_batch: tuple[int, int] | None  # an estimate for each of the two
    smallest_gpu: str  # of those in the table, the smallest that is enough; "": none


@dataclass(frozen=True)
class Report:
    status: int
    steps: int = 0  # how many steps the optimizer made
    failure: Failure | None = None
    waits: list[Wait] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)
    memory: Memory | None = None
    fit: Fit | None = None  # only with Request.gpu
    growth: Growth | None = None
    on_cpu: Line | None = None  # the line that made the model, if it trains on the CPU
    notes: list[str] = field(default_factory=list)  # sentences
    facts: dict[str, Any] = field(default_factory=dict)  # set by Request.after
    remarks: list[Remark] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)  # empty without Request.names
    # The script failed after a loop that was left early, so the loop has to run whole.
    fails_after_loop: bool = False
    fails_after_visit: bool = False  # and before, it ran a branch before its turn
    made: list[str] = field(default_factory=list)  # paths of new folders

    def plain(self) -> dict[str, Any]:
        """The report as JSON data, in which each line comes with its code."""
        plain: dict[str, Any] = _plain(self)
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Line):
        return {"file": value.file, "line": value.number, "code": value.code}
    if dataclasses.is_dataclass(value):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    # A script's fact may be anything.
    is_plain = value is None or isinstance(value, str | int | float)
    return value if is_plain else type(value).__name__


def fits(value: Any, kind: Any = Report) -> bool:
    """Whether a value, which a script may forge, looks like Report.plain()."""
    origin, kinds = typing.get_origin(kind), typing.get_args(kind)
    hints = {}
    if kind is Line:
        hints = {"file": str, "line": int, "code": str}
    elif dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
    if hints:
        is_like = isinstance(value, dict) and value.keys() == hints.keys()
        return is_like and all(fits(value[name], hints[name]) for name in hints)
    if origin in (list, tuple):
        return isinstance(value, list) and all(fits(part, kinds[0]) for part in value)
    if origin is dict:
        is_like = isinstance(value, dict) and len(value) <= MOST_NAMES
        is_like = is_like and all(len(name) <= LONGEST_NAME for name in value)
        return is_like and all(fits(part, kinds[1]) for part in value.values())
    if kinds:
        return any(fits(value, option) for option in kinds)
    if kind is Any:
        return _characters(value) <= LARGEST_FACT
    is_large = isinstance(value, int) and abs(value) > LARGEST
    return isinstance(value, kind) and not is_large


def is_kept(report: Any) -> bool:
    """Whether a safe report is as small as that of an honest script."""
    return _characters(report, depth=20) <= LARGEST_REPORT


def _characters(value: Any, depth: int = DEEPEST_FACT) -> float:
    """About how many characters a plain value has; infinity if it is nested deeper.

    A number and a container count as 20, since they take much more memory than text.
    """
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list) and depth:
        return 20 + sum(_characters(part, depth - 1) for part in value)
    if isinstance(value, list):
        return math.inf
    return len(value) if isinstance(value, str) else 20


def safe(report: Any, request: Request) -> Any:
    """A plain report that can be drawn, whatever a script wrote into it."""
    last = len(NEWLINE.split(request.text))

    def cut(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            text = drawable(value[:LONGEST_TEXT])
            return plain(text, LONGEST_TEXT) if key in ("notes", "say", "why") else text
        if isinstance(value, list):
            return [cut(part, key) for part in value[:LONGEST_LIST]]
        if not isinstance(value, dict) or key == "facts":  # pages don't draw facts
            return value
        value = {name: cut(part, name) for name, part in value.items()}
        at = value.get("line")
        if isinstance(at, int) and value.get("file", request.name) == request.name:
            value["line"] = min(max(at, 1), last)
        return value

    return cut(report)


def terminal_lines(report: dict[str, Any]) -> Iterator[str]:
    """Lines of text for a terminal; `report` is JSON data from Report.plain."""
    verdict = VERDICTS[report["status"]]
    if report["status"] == OK and not (report["memory"] or report["on_cpu"]):
        verdict = NOTHING_ON_CUDA
    yield f"{verdict} Optimizer steps: {report['steps']}."
    if failure := report["failure"]:
        yield _at(failure["line"])
        yield f"  {failure['kind']}: {failure['message']}"
        yield from dict.fromkeys(map(_argument, failure["arguments"]))
        if failure["why"]:
            yield f"The line to change ({failure['why']}):"
            yield f"  {_at(failure['culprit'])}"
    if where := report["on_cpu"]:
        yield "The script asks for CUDA, but it trains its model on the CPU:"
        yield f"  {_at(where)}"
    if report["waits"]:
        yield "In each step, the CPU waits for the device:"
        for wait in report["waits"]:
            yield f"  {wait['times']} × {wait['cause']}: {_at(wait['line'])}"
    if report["copies"]:
        yield "In each step, the script makes these copies:"
        for copy in report["copies"]:
            same = SAME if copy["same"] else ""
            yield f"  {_size(copy['bytes'])} {copy['way']}{same}: {_at(copy['line'])}"
    if memory := report["memory"]:
        parts = ", ".join(f"{name} {_size(n)}" for name, n in memory["parts"].items())
        parts = f": {parts}" if parts else ""
        peak = _size(memory["peak"])
        yield f"At their peak, the tensors take {peak} of memory{parts}."
        if report["fit"]:
            yield from _fit(report["fit"], memory)
        elif memory["fits"] is not None:
            fit = "fit" if memory["fits"] else "do not fit"
            yield f"The tensors {fit} in {_size(memory['limit'])}."
        if memory["largest_batch"] is not None and not report["fit"]:
            most, rows = memory["largest_batch"], memory["batch_size"]
            yield f"A batch of about {most:,} rows would fit; this batch has {rows:,}."
    if growth := report["growth"]:
        why = "Tensors are made here"
        if growth["keeps_graph"]:
            is_one = not growth["also"]
            why = "This line holds" if is_one else "Each of these lines holds"
            why += " on to the graph"
        more = max(0, growth["bytes_a_step"])
        grows = f"Memory grows by {_size(more)}" if more else "The graph grows"
        yield f"{grows} in each step. {why}:"
        yield from (f"  {_at(line)}" for line in (growth["line"], *growth["also"]))
    for remark in report["remarks"]:
        yield remark["say"]
        yield f"  {_at(remark['line'])}"
    yield from report["notes"]


def _argument(tensor: dict[str, Any]) -> str:
    shape = ", ".join(map(str, tensor["shape"]))
    name, line = tensor["name"] or "a tensor", _at(tensor["line"])
    return f"  {name} ({shape}) is on {tensor['device']} and was made at {line}"


def _fit(fit: dict[str, Any], memory: dict[str, Any]) -> Iterator[str]:
    least, most = (_size(size) for size in fit["usable"])
    beside = f"CUDA leaves {least} to {most} for tensors, less cuDNN's workspaces"
    verb = {True: "fit", None: "may or may not fit", False: "do not fit"}[fit["fits"]]
    yield f"The tensors {verb} on the GPU {fit['gpu']}. There, {beside}."
    if fit["largest_batch"]:
        # Two digits: the estimate isn't better, and it must not be too high.
        least, most = (f"{_rounded_down(rows):,}" for rows in fit["largest_batch"])
        rows = least if least == most else f"{least} to {most}"
        now = f"this batch has {memory['batch_size']:,}"
        yield f"There, a batch can have up to about {rows} rows; {now}."
    if not fit["fits"] and fit["smallest_gpu"]:
        known = "The smallest GPU with enough memory, of those with known figures, is"
        yield f"{known} the {fit['smallest_gpu']}."


def _rounded_down(number: int) -> int:
    """The number with two significant digits."""
    factor = 10 ** max(0, len(str(number)) - 2)
    return number // factor * factor


def _at(line: dict[str, Any] | None) -> str:
    if line is None:
        return "a line outside the script"
    file = line["file"].removeprefix(os.getcwd() + os.sep)
    return f"{file}:{line['line']}  {line['code']}"


def _size(size: int) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} GB"
