"""Rules on the CPU that waits for the device, or does not, and on its workers."""

import ast
import re
from collections.abc import Iterator

from core.mistakes.script.finding import Finding
from core.mistakes.script.reading import (
    GPU,
    WAITS,
    Loop,
    Script,
    called,
    dotted,
    keyword,
    losses,
    names,
)

PRINTS = ("print", "float", "set_description", "set_postfix")
CLOCKS = {"time.time", "time.perf_counter", "time.monotonic", "perf_counter", "time"}


def waits_in_every_step(script: Script) -> Iterator[Finding]:
    """`.item()` and its like, in each turn of a training loop."""
    if not GPU.search(script.words):  # on the CPU alone it costs nothing
        return
    for loop in script.training_loops:
        backward = losses(loop)
        for each in script.in_every_turn(loop):
            waits = called(each) in WAITS and isinstance(each, ast.Call)
            printed = called(each) in PRINTS and names(each) & backward
            if waits or printed:
                shown = called(each) if printed else f".{called(each)}"
                say = (
                    f"`{shown}()` needs the number now, so the CPU waits for the "
                    "device in every step. Add up on the device with `.detach()`, and "
                    "ask once in a while."
                )
                yield Finding(each.lineno, "look", say, "item_every_step")
                break


def clock_without_waiting(script: Script) -> Iterator[Finding]:
    """The clock is read when the work is queued, not when it is done."""
    if not re.search(r"cuda|accelerator|mps|xpu", script.words):
        return
    starts = [
        (name, stmt)
        for name, value, stmt in script.assigned
        if isinstance(value, ast.Call) and dotted(value.func) in CLOCKS
    ]
    for name, start in starts:
        stop = next(
            (
                each
                for each in script.nodes
                if isinstance(each, ast.BinOp)
                and isinstance(each.op, ast.Sub)
                and dotted(each.right) == name
                and each.lineno > start.lineno
                and script.place(each) == script.place(start)
            ),
            None,
        )
        if stop is None:
            continue
        between = [n for n in script.nodes if start.lineno < n.lineno <= stop.lineno]
        inside = [each for node in between for each in script.reached(node)]
        asks = any(
            isinstance(each, ast.Call)
            and (dotted(each.func) in script.models or called(each) == "backward")
            for each in inside
        )
        waits = {"synchronize", "elapsed_time", *WAITS}
        if asks and not any(called(each) in waits for each in inside):
            say = (
                "The clock stops when the work is queued, which is before it is done. "
                "Call `torch.accelerator.synchronize()` before both readings."
            )
            yield Finding(stop.lineno, "likely", say, "timing_unsynchronized")


def workers_without_guard(script: Script) -> Iterator[Finding]:
    """Workers that import the script, which starts workers, which import it ..."""
    if "__main__" in script.words or script.is_notebook:
        return
    loaders = [
        each
        for each in script.all("DataLoader")
        if isinstance(number := keyword(each, "num_workers"), ast.Constant)
        and number.value
    ]
    runs = [
        each
        for each in script.tree.body
        if not hasattr(each, "body") or isinstance(each, Loop | ast.With | ast.If)
    ]
    trains = any(script.reaches(each, "backward") for each in runs)
    if loaders and trains:
        say = (
            "Where processes are not forked, as on Windows and macOS, each worker "
            "imports this script, and fails where it would start workers itself. Put "
            "what trains into a function, and call it under "
            '`if __name__ == "__main__":`.'
        )
        yield Finding(loaders[0].lineno, "likely", say)
