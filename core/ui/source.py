"""The source of what ran, read from its file: importing it would import torch."""

import ast
import difflib
import textwrap
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def source(path: str, name: str) -> str:
    """The text of the function or class `name` in the file at `path`."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            return textwrap.dedent("\n".join(lines))
    raise LookupError(f"{path} has no {name}")


@cache
def body(path: str, name: str) -> str:
    """What that function does: its lines without the signature and the docstring."""
    text = source(path, name)
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1 if ast.get_docstring(function) else 0]
    return textwrap.dedent("\n".join(text.splitlines()[first.lineno - 1 :]))


@cache
def changes(path: str, before: str, after: str) -> str:
    """How the body of one function differs from that of another, line by line."""
    lines = difflib.unified_diff(
        body(path, before).splitlines(),
        body(path, after).splitlines(),
        n=2,
        lineterm="",
    )
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


@cache
def lines_with(path: str, name: str, part: str) -> str:
    """The lines of that function or class which contain `part`."""
    found = [line.strip() for line in source(path, name).splitlines() if part in line]
    return "\n".join(found)
