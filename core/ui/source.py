"""The source of what ran, read from its file: importing it would import torch.

It is named by its address in the code, "core.loops:train_epoch".
"""

import ast
import difflib
import re
import textwrap
from collections.abc import Callable, Container
from functools import cache
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).parents[2]
# A text, the address of code, or what draws something.
Part = str | Callable[[], object]
ADDRESS = re.compile(r"core(\.\w+)+:[\w.]+")


@cache
def source(address: str) -> str:
    """The text of the function, class or method at that address; else LookupError."""
    module, _, name = address.partition(":")
    text = ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8")
    inside: list[ast.stmt] = ast.parse(text).body
    node: ast.stmt | None = None
    for part in name.split("."):
        named = (each for each in inside if getattr(each, "name", None) == part)
        node = next(named, None)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise LookupError(f"{module} has no {name}")
        inside = node.body
    assert node is not None
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


@cache
def body(address: str) -> str:
    """What that function does: its lines without the signature and the docstring."""
    text = source(address)
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1 if ast.get_docstring(function) else 0]
    return textwrap.dedent("\n".join(text.splitlines()[first.lineno - 1 :]))


def changes(before: str, after: str) -> str:
    """How one text differs from another, line by line."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), n=2, lineterm=""
    )
    return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def marked(code: str, at: Container[int | None]) -> str:
    """The code with an arrow at these lines, from 1."""
    return "\n".join(
        f"{'→' if number in at else ' '} {line}".rstrip()
        for number, line in enumerate(code.splitlines(), 1)
    )


def lines_with(address: str, part: str) -> str:
    """The lines of that function or class which contain `part`."""
    found = [line.strip() for line in source(address).splitlines() if part in line]
    return "\n".join(found)


def show(*parts: Part) -> None:
    """The code at each of some addresses, and between them what is said of it."""
    for part in parts:
        if callable(part):
            part()
        elif ADDRESS.fullmatch(part):
            st.code(source(part), line_numbers=True)
        else:
            st.markdown(part)


@st.fragment
def code_tabs(*tabs: tuple[str, *tuple[Part, ...]]) -> None:
    """The name of each tab and, in it, such parts as `show` takes.

    Only the open one is drawn: each page has some, and few look into all of them.
    """
    names = [name for name, *_ in tabs]
    drawn = st.tabs(names, key=f"code_{names[0]}", on_change="rerun")
    for tab, (_, *parts) in zip(drawn, tabs, strict=True):
        if tab.open:
            with tab:
                show(*parts)
