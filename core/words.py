"""What pages say where no figure chooses the words: `words.toml` beside the code.

A teacher edits these files and a translator translates them; `tests/test_words.py`
checks that every key is used and that every key in use is there.
"""

import tomllib
from pathlib import Path
from typing import Any


def capitalized(text: str) -> str:
    """With its first letter large, and the others as they are."""
    return text[:1].upper() + text[1:]


class Words:
    """The texts of the folder that `file`, a module's `__file__`, stands in.

    A key is the way to a text, "race.help.steps".
    """

    def __init__(self, file: str) -> None:
        path = Path(file).with_name("words.toml")
        self._texts = tomllib.loads(path.read_text("utf-8"))

    def __call__(self, key: str, **fields: object) -> str:
        """The text, with its `{fields}` filled if given. KeyError: no such key."""
        text = self.table(key)
        return text.format(**fields) if fields else text

    def table(self, key: str) -> Any:
        """All that stands below the key: texts by their names, or a list."""
        node: Any = self._texts
        for name in key.split("."):
            node = node[name]
        return node
