"""Run a script on the simulated device, and observe it."""

import _thread
import bdb
import io
import os
import re
import signal
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import (
    chdir,
    contextmanager,
    nullcontext,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from functools import partial
from importlib.util import spec_from_file_location
from multiprocessing import active_children
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from to_device import gpus
from to_device.dryrun import cuda, failure, piped
from to_device.dryrun.origins import ATTRIBUTES, SET_DATA, Origins
from to_device.dryrun.remarks import Remarks
from to_device.dryrun.report import (
    ASKS,
    DEVICE_ERROR,
    MOST_PRINTED,
    NOT_SIMULATED,
    OK,
    SCRIPT_ERROR,
    Failure,
    Fit,
    Report,
    Request,
    Value,
)
from to_device.dryrun.script import Line, Script, sources
from to_device.dryrun.steps import Steps
from to_device.errors import quoted
from to_device.names import NO_DEVICES
from to_device.sim import ledger, simulation, sizes
from to_device.sim import memory as device_memory
from to_device.sim.stand_ins import put

NO_KERNEL = (
    "There, the first operation fails with: CUDA error: no kernel image is available "
    "for execution on the device."
)
WITHOUT_VALUES = (
    "The dry run gave large tensors sizes but no values, and torch.save wrote no file. "
    "Numbers that the script took from such a tensor were unknown."
)
STAND_IN = re.compile(r"\bto_device\.(dryrun|sim)\b")
SHOWS_THROUGH = "The script fails at what stands in for a part of torch:"
FAILS_ITSELF = "The dry run itself failed, which says nothing of the script:"
SHOWS = ("__repr__", "__str__", "__format__")  # functions that show a tensor's values
MOST_PLACES = 8  # in a note
MOST_MADE = 100  # new folders that are noted
MKDIR = os.mkdir
# A thread may wait for one that filled a queue until the dry run took nothing more.
STUCK_SECONDS, WORK_SECONDS = 20.0, 0.2  # so long without so much work of the processor
STUCK = "The script waited in vain, after a loop that the dry run left early."
MOST_VALUES = 200  # in a report, which a stranger's script must not make huge


class Mode(TorchFunctionMode):
    """Sees each function of torch that the script calls."""

    def __init__(self, run: "Run") -> None:
        super().__init__()
        self.origins, self.steps, self.remarks = run.origins, run.steps, run.remarks
        self.run = run

    def __torch_function__(
        self, function: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        leaves = tree_leaves((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        if function == SET_DATA:
            self.origins.note_data(*args)
        with self.steps.calling(name, tensors):
            try:
                if sizes.is_on and tensors and sizes.is_unknown(tensors[0]):
                    result = self.run.call_without_values(function, args, kwargs)
                else:
                    result = cuda.call(function, args, kwargs)
            except Exception as error:
                failure.attach(error, leaves)
                raise
        self.steps.note_result(name, result, tensors)
        if name == "__get__":
            name = getattr(function.__self__, "__name__", "")
            # A move of a model asks for its parameters' data, too.
            is_own = self.origins.script.owns(sys._getframe(1).f_code.co_filename)
            is_noted = name in ATTRIBUTES or (
                name == "data" and (is_own or not isinstance(args[0], nn.Parameter))
            )
        else:
            is_noted = True
        if is_noted and not any(map(is_functorch_wrapped_tensor, tensors)):
            self.origins.note(name, result, tensors)
            if name == "to" and result is args[0]:
                self.origins.note_kept(result, leaves)
            self.remarks.note_loss(name, tensors)
        return result


class Run:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.script = Script(
            request.name,
            request.steps,
            lambda: self.steps.progress(),
            request.module,
            request.visits,
        )
        self.origins = Origins(self.script, request.starts_processes)
        self.steps = Steps(request.steps, self.origins, whole=request.names)
        self.remarks = Remarks(self.origins)
        self.script.visited = self.remarks.note_end
        self.values: dict[tuple[int, str], Value] = {}
        self.made: list[str] = []  # paths of new folders
        self.left_behind = {*request.made}
        self.is_stuck = False  # whether it waits after a loop that was left early
        self.script.tell = self._tell if request.names else None
        self.facts: dict[str, Any] = {}
        self.input = piped.Piped(None)
        self.late_after = 0.0  # the seconds of the limit that was reached, if one was
        self.computed = 0.0  # for how many seconds its main thread did until then,
        self.took = 0.0  # and how many of the clock it took
        self.read: set[Line] = set()  # lines that got a 0 in place of a value
        device_memory.capacity = request.capacity
        if request.gpu:
            cuda.gpu = gpus.find(request.gpu)

    def mode(self) -> Mode:
        return Mode(self)

    def call_without_values(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function of torch whose first tensor has no values."""
        name = getattr(function, "__name__", "")
        if name in SHOWS:
            ledger.wait("item")  # once at least: how often depends on the values
            return "?"
        if name == "__bool__":  # Python would turn another error into "ambiguous"
            raise sizes.NeedsValuesError("a value that this pass doesn't have")
        with sizes.reading() if name in sizes.READS else nullcontext():
            result = cuda.call(function, args, kwargs)
        if name == "item":
            return sizes.Unknown()
        if name in sizes.READS and (line := self.origins.here()):
            self.read.add(line)
        return result

    def report(self) -> Report:
        if not self.request.values:
            sizes.is_on = True
            put(torch, save=lambda *_, **__: None)
        if self.request.simulates:
            # A request with `names` wants values from the whole run: shorten no loops.
            if not self.request.names and self.request.shortens:
                self.script.install()
            self.origins.install()
            self.script.returned = self.origins.note_returned
            self.script.made = self.origins.note_made
            self.steps.install()
            self.remarks.install()
            cuda.install(self.mode)
        elif not self.request.starts_processes:  # a loader's workers, or a compiler
            self.origins.install()
            put(torch, compile=cuda.skip_compile)
        status, explanation, sentence = OK, None, ""
        if (error := self._run()) is not None:
            status, explanation, sentence = self._judge(error)
        elif self.input.is_missed:
            status = NOT_SIMULATED
        asks = ASKS if self.input.is_missed and sentence != ASKS else ""
        memory, fit = None, None
        # Once memory has run out, the peak doesn't say how much the script needs.
        ran_out = explanation is not None and "out of memory" in explanation.message
        if self.steps.peak.size and not ran_out:
            memory = self.steps.memory(self.request.memory)
            fit = self._fit() if self.request.gpu else None
        fails = status == NOT_SIMULATED and explanation is not None
        early = self.script.branches.early
        return Report(
            status,
            self.steps.count,
            explanation,
            self.steps.waits(),
            self.steps.copies(),
            memory,
            fit,
            self.steps.growth(),
            self._on_cpu(),
            [*self._notes(), *filter(None, [sentence, asks])],
            self.facts,
            self.remarks.remarks(has_failed=error is not None),
            [self.values[place] for place in sorted(self.values)],
            fails_after_loop=self.is_stuck
            or (fails and bool(self.script.shortened or early)),
            fails_after_visit=fails and bool(early),
            made=self.made,
        )

    def _notes(self) -> list[str]:
        """Sentences on how this run differed from one on a GPU."""
        notes = (
            ["The dry run skipped torch.compile and ran the model uncompiled."]
            if cuda.compiles
            else []
        )
        rank = sys.modules.get("to_device.dryrun.one_rank")
        notes += (
            ["The dry run checked the script as the only rank of a world of one."]
            if rank and rank.was_used
            else []
        )
        notes += self._notes_on_loops()
        if not self.request.values:
            notes.append(WITHOUT_VALUES)
        if self.read:
            notes.append(
                "There, the script read 0 for each value, so what depends on it wasn't "
                f"examined: {', '.join(map(self._place, sorted(self.read)))}."
            )
        if cuda.makes_bfloat16 and not cuda.gpu.has_bfloat16:
            notes.append(
                f"The {cuda.gpu.title} only emulates bfloat16, which is slow. Use "
                "float16 with torch.amp.GradScaler there."
            )
        return notes

    def _notes_on_loops(self) -> list[str]:
        notes = []
        if loops := ", ".join(map(self._place, sorted(self.script.shortened))):
            notes.append(
                "The dry run left these loops early, so the script's results "
                f"differ from those of a full run: {loops}."
            )
        branches = self.script.branches
        if early := ", ".join(self._place(Line(*at)) for at in sorted(branches.early)):
            notes.append(
                "So that loops also ran what they only run now and then, the dry run "
                f"changed these conditions before their turn: {early}."
            )
        if missed := branches.not_run(self.script.shortened):
            places = [self._place(Line(b.file, b.first), b.last) for b in missed]
            more = len(places) - MOST_PLACES
            places[MOST_PLACES:] = [f"and {more} more"] if more > 0 else []
            notes.append(
                "These parts of the loops did not run, so the dry run knows nothing of "
                f"them: {', '.join(places)}."
            )
        return notes

    def _fit(self) -> Fit:
        least, most = (self.steps.memory(size) for size in cuda.gpu.usable)
        batches = None
        if least.largest_batch is not None and most.largest_batch is not None:
            batches = least.largest_batch, most.largest_batch
        enough = gpus.smallest(most.peak)
        return Fit(
            cuda.gpu.title,
            cuda.gpu.usable,
            bool(least.fits) if least.fits == most.fits else None,
            batches,
            enough.title if enough else "",
        )

    def _tell(self, line: int, name: str, value: Any) -> Any:
        """Remember a value of the script: a tensor, module, or dict of tensors.

        Returns the value.
        """
        if isinstance(value, Tensor):
            tensors, shape = [value], tuple(value.shape)
        elif isinstance(value, nn.Module):
            tensors, shape = [*value.parameters(), *value.buffers()], None
        else:
            for key, part in value.items() if isinstance(value, dict) else ():
                if isinstance(part, Tensor):
                    self._tell(line, f"{name}[{key!r}]", part)
            return value
        dtypes, devices = (
            " and ".join(sorted({str(getattr(tensor, key)) for tensor in tensors}))
            for key in ("dtype", "device")
        )
        if tensors and len(self.values) < MOST_VALUES:
            kind, dtypes = type(value).__name__, dtypes.replace("torch.", "")
            self.values[line, name] = Value(line, name, kind, shape, dtypes, devices)
        return value

    def _mkdir(self, path: Any, *arguments: Any, **more: Any) -> None:
        """Make a folder, as os.mkdir does, and note it for the next dry run.

        A folder that an earlier dry run of the script has made counts as new, once.
        """
        place = os.path.abspath(path) if isinstance(path, str | os.PathLike) else ""
        try:
            MKDIR(path, *arguments, **more)
        except FileExistsError:
            if place not in self.left_behind:
                raise
            self.left_behind.remove(place)
        if place and len(self.made) < MOST_MADE:
            self.made.append(place)

    def _run(self) -> BaseException | None:
        """Run the script; returns the error that ended it."""
        main: Any = types.ModuleType("__main__")
        main.__file__ = self.request.name
        if module := self.request.module:  # what a relative import starts from
            main.__spec__ = spec_from_file_location(module, self.request.name)
            main.__package__ = module.rpartition(".")[0]
        sys.modules["__main__"] = main
        sys.argv = [self.request.name, *self.request.arguments]
        # With -P, there is no folder of the program that runs in the first place.
        sys.path[: not sys.flags.safe_path] = [self.script.folder]
        sys.pycache_prefix = os.devnull  # compile imports, so that loops are rewritten
        sys.dont_write_bytecode = True
        # `_end_in_time` sends an interrupt, which a background process would ignore.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        warnings.showwarning = self._warn
        self.input = piped.install()
        os.mkdir = self._mkdir  # os.makedirs and Path.mkdir call it
        ended = threading.Event()
        threading.Thread(target=self._end_in_time, args=(ended,), daemon=True).start()
        try:
            with (
                self.mode() if self.request.simulates else nullcontext(),
                sizes.Mode() if not self.request.values else nullcontext(),
            ):
                exec(compile(self.request.before, "before", "exec"), vars(main))
                request = self.request
                for source in sources(request.name, request.text, request.has_magic):
                    exec(self.script.compile(source), vars(main))
                exec(compile(self.request.after, "after", "exec"), vars(main))
        except SystemExit as end:
            if end.code not in (None, 0):
                return self._reason(end)
        except BaseException as error:
            return error
        finally:
            ended.set()
            self.facts = vars(main).get("facts", {})  # also of a script that failed
        return None

    def _reason(self, end: SystemExit) -> BaseException:
        """The script's error for which it was ended, as Hydra does, or else its end."""
        caught = end.__context__
        if caught is not None and any(failure.frames_of(caught, self.origins)):
            return caught
        return end

    def _end_in_time(self, ended: threading.Event) -> None:
        used = _processor_time(threading.main_thread().ident)
        start = worked = time.monotonic()
        spent = time.process_time()
        while not ended.wait(min(0.5, self.request.seconds)):
            now = time.monotonic()
            if time.process_time() - spent > WORK_SECONDS or active_children():
                worked, spent = now, time.process_time()
            if self.script.shortened and now - worked >= STUCK_SECONDS:
                self.is_stuck = True
                _interrupt_main()
                continue
            request, processor = self.request, used()
            limit = request.seconds + request.clock_factor * processor
            is_over = now - start >= limit
            if is_over or processor >= request.processor_seconds:
                if not self.late_after:
                    self.computed, self.took = processor, now - start
                    self.late_after = limit if is_over else request.processor_seconds
                # Interrupt in each turn: Python ignores interrupts in finalizers.
                _interrupt_main()

    def _warn(
        self,
        message: Any,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: Any,
        **__: Any,
    ) -> None:
        """Print a warning with the script's own line that led to it."""
        line = self.origins.here() or Line(self.request.name, 0)
        if self.script.owns(filename):  # an imported file warns of its own line
            line = Line(filename, lineno)
        # torch also names a line of its C++ code, which helps nobody here.
        text = str(message).partition(" (Triggered internally at")[0]
        kind = category.__name__
        print(f"{line.file}:{line.number}: {kind}: {text}", file=sys.stderr)

    def _judge(self, error: BaseException) -> tuple[int, Failure | None, str]:
        if self.request.simulates and (missing := failure.missing_feature(error)):
            return NOT_SIMULATED, None, missing
        if self.is_stuck and not self.late_after:
            return NOT_SIMULATED, None, STUCK
        if self.late_after:
            frames = list(failure.frames_of(error, self.origins))
            where = f" on {self._place(frames[0][0])}" if frames else ""
            why = "Look for an endless loop or code that takes too long."
            if self.computed < self.late_after / 2:
                why = (
                    f"It computed for {self.computed:.0f} s of them, so it waited for "
                    "something, or this machine is busy: then try again later."
                )
            after = f"{self.late_after:.0f} s"
            if self.took > self.late_after + 1:  # a limit of computing
                after = f"computing for {after}"
                if self.computed < self.took / 2:
                    where += f" ({self.took:.0f} s by the clock: this machine is busy)"
            say = (
                f"The script was stopped after {after}{where}, so the rest did not run."
            )
            return NOT_SIMULATED, None, f"{say} {why}"
        for cause in failure.chain(error):
            if failure.is_of_devices(cause) or failure.lost_leaf(cause, self.origins):
                return DEVICE_ERROR, failure.explain(cause, self.origins), ""
        if self.input.is_missed or self._lacks_a_line(error):
            return NOT_SIMULATED, failure.explain(error, self.origins), ASKS
        if self.request.traceback:  # only frames from the script's first one on
            first = error.__traceback__
            while first and not self.script.owns(first.tb_frame.f_code.co_filename):
                first = first.tb_next
            traceback.print_exception(error.with_traceback(first))
        for cause in failure.chain(error):
            message = failure.text(cause)
            if STAND_IN.search(message):
                return NOT_SIMULATED, None, f"{SHOWS_THROUGH} {quoted(message)}."
            if at := failure.own_line(cause):
                said = quoted(f"{type(cause).__name__}: {message}")
                return NOT_SIMULATED, None, f"{FAILS_ITSELF} {said} ({at})."
        sentence = ""
        if self.script.branches.early:  # a condition may have been wrong for its turn
            return (
                NOT_SIMULATED,
                failure.explain(error, self.origins),
                "The script fails after a condition that the dry run changed.",
            )
        if self.script.shortened:  # the loop's end may be what the script lacks
            return (
                NOT_SIMULATED,
                failure.explain(error, self.origins),
                "The script fails after a loop that the dry run left early.",
            )
        if not self.request.values:
            return (
                NOT_SIMULATED,
                failure.explain(error, self.origins),
                "The script fails, perhaps for want of values.",
            )
        if isinstance(error, FileNotFoundError) and error.filename:
            sentence = f"A file is missing: {quoted(error.filename, most=200)}."
        return SCRIPT_ERROR, failure.explain(error, self.origins), sentence

    def _lacks_a_line(self, error: BaseException) -> bool:
        """Whether this is how `input` or a debugger ends where the input does."""
        if isinstance(error, bdb.BdbQuit):  # or the debugger read a "q"
            return self.input.has_ended
        return isinstance(error, EOFError) and str(error) == "EOF when reading a line"

    def _place(self, line: Line, last: int = 0) -> str:
        """A line, or the lines up to `last`, in words."""
        is_script = line.file == self.request.name
        file = line.file.removeprefix(self.script.folder + os.sep)
        numbers = f"line {line.number}"
        if last > line.number:
            numbers = f"lines {line.number} to {last}"
        return numbers + ("" if is_script else f" of {file}")

    def _on_cpu(self) -> Line | None:
        """Where the model was made, if the script uses CUDA but trains on the CPU."""
        origin = self.origins.of(self.steps.on_cpu if cuda.is_requested else None)
        if origin is None:
            return None
        # If a function only makes and returns the model, its caller's line counts.
        caller = next((line for line, _ in origin.callers), origin.line)
        return caller if origin.line.code.startswith("return") else origin.line


def run(request: Request) -> Report:
    """Make a dry run. Call this only once in a process.

    The process loses its real devices, and torch stays changed.
    """
    # PYTHONBREAKPOINT=0 skips breakpoints, where the script would wait for input.
    os.environ.update(NO_DEVICES, PYTHONBREAKPOINT="0")
    why_not = simulation.offer() if request.simulates else ""
    if why_not:
        return Report(NOT_SIMULATED, notes=[why_not])
    if request.gpu and (why := gpus.find(request.gpu).why_no_code(torch.__version__)):
        return Report(DEVICE_ERROR, notes=[f"{why} {NO_KERNEL}"])
    return Run(request).report()


def _interrupt_main() -> None:
    """Raise KeyboardInterrupt in the main thread, also if it waits for a lock."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _processor_time(thread: Any) -> Callable[[], float]:
    """A function that returns how many seconds a thread has run since this call.

    Where the system doesn't tell, these are seconds by the clock.
    """
    clock: Callable[[], float] = time.monotonic
    if hasattr(time, "pthread_getcpuclockid"):
        clock = partial(time.clock_gettime, time.pthread_getcpuclockid(thread))
    start = clock()
    return lambda: clock() - start


class Printed(io.StringIO):
    """The first MOST_PRINTED characters that a script prints.

    Without a limit, endless output would fill the memory.
    """

    def write(self, text: str) -> int:
        super().write(text[: max(0, MOST_PRINTED - self.tell())])
        return len(text)


@contextmanager
def own_folder(dataset: Path) -> Iterator[None]:
    """A working folder for the script, with the folder of a dataset if it exists."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as path, chdir(path):
        if dataset.is_dir():
            os.mkdir("data")
            with suppress(OSError):  # on Windows, a link may need more rights
                os.symlink(dataset, f"data/{dataset.name}")
        yield


def run_and_read(request: Request, dataset: Path) -> tuple[dict[str, Any], str]:
    """Make a dry run; return its report as JSON data, and what the script printed.

    The script finds the folder `dataset` in its folder "data".
    """
    printed = Printed()
    with own_folder(dataset), redirect_stdout(printed), redirect_stderr(printed):
        report = run(request).plain()
    return report, printed.getvalue()
