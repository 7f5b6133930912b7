"""Errors that people read, texts that are safe to show, and what commands share."""

import argparse
import re
import signal
from typing import Any, NoReturn

MOST_QUOTED = 60  # characters
MARKUP = re.compile(
    r"[][<>*#$`\n]|://|www\.", re.IGNORECASE
)  # characters of links, pictures, headings, ...


class ExplainedError(Exception):
    """An error whose text says what went wrong and what to do; pages show this text."""


class Parser(argparse.ArgumentParser):
    """Prints errors in one line, and help with the line breaks of the docstring."""

    def __init__(self, prog: str, **options: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, formatter_class=layout, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def end_with_pipe() -> None:
    """Let a command end without an error when its reader, such as head, has ended.

    After this call, writing to any process that has ended ends the command, too. So a
    command that needs other processes makes this call just before its output.
    """
    if hasattr(signal, "SIGPIPE"):  # Windows has no such signal
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def quoted(text: object, most: int = MOST_QUOTED) -> str:
    """A stranger's text as a Markdown code span: one line, at most `most` characters.

    Backslashes are not enough: Streamlit removes them before it looks for links.
    """
    line = "".join(
        c if c.isprintable() else " " if c.isspace() else ascii(c)[1:-1]
        for c in str(text)[: most + 1]
    )
    if len(line) > most:
        line = f"{line[: most - 1]}…"
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    inside = f" {line} " if longest else line or "''"
    return f"{fence}{inside}{fence}"


def drawable(text: str) -> str:
    """The text without lone surrogates, which no page can draw."""
    return text.encode(errors="replace").decode()


def plain(text: str, most: int) -> str:
    """The text unchanged if code spans are its only markup, or else in a code span."""
    text = text[:most]  # first, since a cut may open a code span
    is_odd = "\n" in text or "\\`" in text
    has_markup = is_odd or MARKUP.search(_without_spans(text))
    return quoted(text, most) if has_markup else text


def _without_spans(text: str) -> str:
    """One line of Markdown without its code spans."""
    pieces = re.split("(`+)", text)  # every second piece is a run of backticks
    last = {run: at for at, run in enumerate(pieces) if at % 2}
    outside, at = [], 0
    while at < len(pieces):
        if at % 2 and last[pieces[at]] > at:  # a run of this length ends the span
            at = pieces.index(pieces[at], at + 1)
        else:
            outside.append(pieces[at])
        at += 1
    return "".join(outside)
