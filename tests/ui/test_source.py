"""The code that the pages show: it is there, it is whole, and it fits."""

import ast
from pathlib import Path

import pytest

from core.config import MODELS
from core.machine.idioms import IDIOMS
from core.ui import format
from core.ui.source import lines_with, source

ROOT = Path(__file__).parents[2]
WIDTH = 79  # characters that a code box shows without scrolling sideways


def calls(function: str) -> list[tuple[str, ...]]:
    """The literal arguments of every call of `function` on the pages, once each.

    The Train page shows the model that was chosen: that stands for all models. The
    Device page shows the ways to ask for a device in a loop: that stands for all.
    """
    found: set[tuple[str, ...]] = set()
    for page in [ROOT / "app.py", *ROOT.glob("pages/*.py"), *ROOT.glob("core/ui/*.py")]:
        for node in ast.walk(ast.parse(page.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
                literal = [str(getattr(each, "value", "")) for each in node.args]
                if all(literal):
                    found.add(tuple(literal))
                elif literal[0] == "core/machine/idioms.py":
                    found |= {(literal[0], each.__name__) for each in IDIOMS}
                elif literal[0] == "core/models.py":
                    found |= {
                        ("core/models.py", format.CLASSES[model]) for model in MODELS
                    }
    return sorted(found)


def test_pages_show_code() -> None:
    """The calls are found: else the tests below would test nothing."""
    assert ("core/loops.py", "train_epoch") in calls("source")
    assert ("core/models.py", "CNN") in calls("source")
    assert calls("lines_with")


@pytest.mark.parametrize(("path", "name"), calls("source"))
def test_shown_code_is_whole(path: str, name: str) -> None:
    """The text compiles by itself, and defines what it was asked for and no more."""
    (node,) = ast.parse(source(path, name)).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    assert node.name == name


@pytest.mark.parametrize(("path", "name"), calls("source"))
def test_shown_code_fits(path: str, name: str) -> None:
    """No line has to be scrolled sideways to be read."""
    too_long = [line for line in source(path, name).splitlines() if len(line) > WIDTH]
    assert not too_long


@pytest.mark.parametrize(("path", "name", "part"), calls("lines_with"))
def test_shown_lines_are_there(path: str, name: str, part: str) -> None:
    """The lines that a page picks out exist, hold what they are for, and fit."""
    lines = lines_with(path, name, part).splitlines()
    assert lines
    for line in lines:
        assert part in line
        assert len(line) <= WIDTH
        assert line == line.strip()


def test_what_is_not_there_is_an_error() -> None:
    """A function that was renamed breaks the page loudly, not with an empty box."""
    with pytest.raises(LookupError, match=r"core/loops\.py has no trian_epoch"):
        source("core/loops.py", "trian_epoch")
