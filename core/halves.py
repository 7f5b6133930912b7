"""Functions that are written once and have two halves: a mistake, and its fix.

A line that ends in "# broken" or "# fixed" is only in that half; others are in both. If
a half lacks a line that opens a block, the block moves out by one level.
"""

import ast
import linecache
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HALVES = ("broken", "fixed")
MARK = re.compile(r" +# (broken|fixed)$")
OPENS = re.compile(r" *(?:for|if|with)\b")


def lines_of(function: str, half: str) -> list[tuple[str, bool]]:
    """Return each line of one half, and whether only this half has the line."""
    lines: list[tuple[str, bool]] = []
    # If a left-out line opens a block, the lines of the block move out. `outside` is
    # the indentation of such a line, or 1000 outside of such a block.
    outside = 1000
    for line in function.replace("def ", f"def {half}_", 1).splitlines():
        indentation, mark = len(line) - len(line.lstrip()), MARK.search(line)
        if line and indentation <= outside:
            outside = 1000
        if mark and mark[1] != half:
            if OPENS.match(line):
                outside = indentation
        else:
            text = MARK.sub("", line)
            lines.append((text[4:] if indentation > outside else text, bool(mark)))
    return lines


def _halves(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the code of both halves of each function with marked lines."""
    for node in ast.parse(text).body:
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        if isinstance(node, ast.FunctionDef) and any(map(MARK.search, lines)):
            for half in HALVES:
                own = lines_of("\n".join(lines), half)
                code = "\n".join(line for line, _ in own)
                yield f"{half}_{node.name}", f"{code}\n"


@cache
def read(module: str) -> str:
    """A module's text, followed by each half as its own function."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"There is no module {module}")
    text = Path(spec.origin).read_text("utf-8")
    return "\n\n".join([text, *(code for _, code in _halves(text))])


def define(module: dict[str, Any]) -> None:
    """Define both halves of the functions of a module, given its globals()."""
    for name, code in _halves(Path(module["__file__"]).read_text("utf-8")):
        file = f"{name}.py"  # in a traceback, line 1 is the line after the "def"
        body = code.splitlines(keepends=True)[1:]
        linecache.cache[file] = len(code), None, body, file
        exec(compile(ast.increment_lineno(ast.parse(code), -1), file, "exec"), module)
