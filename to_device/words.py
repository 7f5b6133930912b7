"""The paragraphs of pages: `words.toml` beside the code.

A text of up to a line, or a sentence or two with figures in them, stands in the code,
beside its widget, unless several places use it. `tests/test_words.py` checks this, and
that every key is used and that every key in use exists.
"""

import tomllib
from pathlib import Path
from typing import Any


def capitalized(text: str) -> str:
    """The text with its first letter in upper case, and the others unchanged."""
    return text[:1].upper() + text[1:]


class Words:
    """The texts in words.toml beside a module. `file` is the module's `__file__`.

    A key is the path to a text: "race.help.steps".
    """

    def __init__(self, file: str) -> None:
        path = Path(file).with_name("words.toml")
        self._texts = tomllib.loads(path.read_text("utf-8"))

    def __call__(self, key: str, **fields: object) -> str:
        """The text at `key`, with `fields` filled in. Raises KeyError if missing."""
        text = self.table(key)
        return text.format(**fields) if fields else text

    def table(self, key: str) -> Any:
        """What is at `key`: a text, a list, or a table with further keys."""
        node: Any = self._texts
        for name in key.split("."):
            node = node[name]
        return node
