"""Addresses in the code, "core.loops:train_epoch": what each names is there.

Jobs are sent by them and pages show code by them: it must not be a learner who finds
out that a function was renamed. What is shown is whole, and fits.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from core.config import MODELS
from core.jobs.address import resolve
from core.machine.idioms import IDIOMS
from core.mistakes.catalogue import MISTAKES
from core.speed.ladder import RUNGS
from core.ui import format
from core.ui.source import body, lines_with, source

ROOT = Path(__file__).parents[1]
FILES = sorted(
    [*ROOT.glob("*.py"), *ROOT.glob("pages/*.py"), *ROOT.glob("core/**/*.py")]
)
WIDTH = 79  # characters that a code box shows without scrolling sideways
FORM = re.compile(r"core(\.\w+)+:[\w.*]+")
STARS = {  # what stands for the star where pages show code in a loop
    "core.machine.idioms:*": [each.__name__ for each in IDIOMS],
    "core.mistakes.examples.fixtures:*": ["batch", "new_model", "steps", "ScaledLoss"],
    "core.models:*": [format.CLASSES[each] for each in MODELS],
    "core.move.model_to:*": ["copy_of_a_tensor", "module_in_place"],
    "core.speed.rungs:*": [each.name for each in RUNGS],
}
Definition = ast.FunctionDef | ast.ClassDef


def text(node: ast.AST) -> str:
    """A string of the source, with a star for each hole of an f-string; else ""."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text(part) or "*" for part in node.values)
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, str) else ""


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All that is in it, without the pieces of f-strings."""
    yield node
    if not isinstance(node, ast.JoinedStr):
        for child in ast.iter_child_nodes(node):
            yield from walk(child)


def nodes() -> Iterator[ast.AST]:
    """Of all files."""
    for file in FILES:
        yield from walk(ast.parse(file.read_text("utf-8")))


def addresses() -> Counter[str]:
    """Every string that has the form of an address, and how often it stands there."""
    found = Counter(each for each in map(text, nodes()) if FORM.fullmatch(each))
    found.update(each.address("*") for each in MISTAKES)  # of both halves
    return found


@cache
def defined(module: str) -> set[str]:
    """What a module defines: "function", "Class", "Class.method", "CONSTANT"."""
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body if file.exists() else []:
        if isinstance(node, Definition):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found |= {f"{node.name}.{each.name}" for each in methods}
        if isinstance(node, ast.Assign):
            found |= {ast.unparse(target) for target in node.targets}
    return found


def meant(address: str) -> list[str]:
    """The names that an address may mean: several where it has a star."""
    module, _, name = address.partition(":")
    form = re.compile(re.escape(name).replace(r"\*", r"[^\W_]\w*"))
    return [f"{module}:{each}" for each in defined(module) if form.fullmatch(each)]


def shown(function: str) -> list[tuple[str, ...]]:
    """The arguments of all calls of `function` that are written out, once each."""
    found = set()
    for node in nodes():
        if isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            first, *others = node.args
            if function in ("show", "code_tabs"):  # any of their arguments
                first, others = node, []
            if function == "Lab":  # its tabs
                (first,) = (each for each in node.args if isinstance(each, ast.Tuple))
                others = []
            for address in filter(FORM.fullmatch, map(text, walk(first))):
                stem, star, _ = address.partition("*")
                filled = [stem + name for name in STARS[address]] if star else [address]
                found |= {(each, *map(text, others)) for each in filled}
    return sorted(each for each in found if all(each))


WHOLE = sorted(set(chain(*map(shown, ("source", "show", "code_tabs", "Lab")))))


def test_every_address_is_there() -> None:
    """There are many of them, and each names something."""
    found = addresses()
    assert found.total() >= 100
    assert found["core.training:run"]
    assert found["core.mistakes.examples.moving:*_data_not_moved"]
    assert [each for each in found if not meant(each)] == []


@pytest.mark.parametrize(
    "address",
    ["core.no_such_module:run", "core.run:rnu", "core.run:", "core.models:*_broken"],
)
def test_what_is_not_there_is_noticed(address: str) -> None:
    """Neither a module nor a name that does not exist passes."""
    assert meant(address) == []


def test_an_address_is_what_it_names() -> None:
    """A worker gets the function, the class or the method itself."""
    from core.loops import train_epoch
    from core.models import CNN

    assert resolve("core.loops:train_epoch") is train_epoch
    assert resolve("core.models:CNN.forward") is CNN.forward
    with pytest.raises(AttributeError, match="trian_epoch"):
        resolve("core.loops:trian_epoch")


def test_pages_show_code() -> None:
    """The calls are found: else the tests below would test nothing."""
    assert ("core.loops:train_epoch",) in WHOLE
    assert ("core.models:CNN",) in WHOLE
    assert ("core.state_dict:save",) in WHOLE
    assert ("core.speed.memory:checkpointed",) in WHOLE
    assert ("core.speed.rungs:textbook",) in shown("body")
    assert ("core.loops:train_epoch", ".to(device)") in shown("lines_with")


@pytest.mark.parametrize("address", [address for (address,) in WHOLE])
def test_shown_code_is_whole(address: str) -> None:
    """The text compiles by itself, and defines what it was asked for and no more."""
    (node,) = ast.parse(source(address)).body
    assert isinstance(node, Definition)
    assert node.name == re.split(r"[:.]", address)[-1]


def test_shown_code_fits() -> None:
    """No line has to be scrolled sideways to be read."""
    texts = [source(*each) for each in WHOLE]
    texts += [body(*each) for each in shown("body")]
    lines = [line for text in texts for line in text.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize(("address", "part"), shown("lines_with"))
def test_shown_lines_are_there(address: str, part: str) -> None:
    """The lines that a page picks out exist, hold what they are for, and fit."""
    lines = lines_with(address, part).splitlines()
    assert lines
    for line in lines:
        assert part in line
        assert len(line) <= WIDTH
        assert line == line.strip()


def test_a_method_is_shown_without_its_class() -> None:
    """It starts at the left, as a function does."""
    assert source("core.models:CNN.forward").startswith("def forward(")


def test_what_is_not_there_is_not_shown() -> None:
    """A function that was renamed breaks the page loudly, not with an empty box."""
    with pytest.raises(LookupError, match=r"core\.loops has no trian_epoch"):
        source("core.loops:trian_epoch")
