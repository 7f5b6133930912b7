"""The source at an address such as "core.loops:train_epoch", read from its file.

The code isn't imported, since that would import torch into the server.
"""

import ast
import re
import textwrap
from collections.abc import Callable, Container
from functools import cache
from typing import Any

import streamlit as st

from core.halves import read
from core.ui import playground

# What `show` draws: a text, the code at an address, or whatever a function draws
Part = str | Callable[[], object]
ADDRESS = re.compile(r"core(\.\w+)+:[\w.]+")


@cache
def source(address: str) -> str:
    """The text of a function, class or method. Raises LookupError if there is none."""
    module, _, name = address.partition(":")
    text = read(module)
    node: Any = ast.parse(text)
    for part in name.split("."):
        children = (n for n in node.body if getattr(n, "name", None) == part)
        node = next(children, None)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            raise LookupError(f"{module} has no {name}")
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines))


@cache
def body(address: str) -> str:
    """The lines of a function without its signature and docstring."""
    text = source(address)
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1 if ast.get_docstring(function) else 0]
    return textwrap.dedent("\n".join(text.splitlines()[first.lineno - 1 :]))


def marked(code: str, at: Container[int | None], sign: str = "→") -> str:
    """The code with `sign` before the lines whose numbers (from 1) are in `at`."""
    return "\n".join(
        f"{sign if number in at else ' '} {line}".rstrip()
        for number, line in enumerate(code.splitlines(), 1)
    )


def show(*parts: Part) -> None:
    """Draw the parts in order: write texts, show code at addresses, call functions."""
    for part in parts:
        if callable(part):
            part()
        elif ADDRESS.fullmatch(part):
            st.code(source(part), line_numbers=True, wrap_lines=True)
            playground.button(part)
        else:
            st.markdown(part)


@st.fragment
def code_tabs(*tabs: tuple[str, *tuple[Part, ...]], key: str = "") -> None:
    """Draw tabs, each with a name and parts for `show`; only the open tab is drawn."""
    names = [name for name, *_ in tabs]
    drawn = st.tabs(names, key=key or f"code_{names[0]}", on_change="rerun")
    for tab, (_, *parts) in zip(drawn, tabs, strict=True):
        if tab.open:
            with tab:
                show(*parts)
