import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from core.config import MODELS
from core.halves import read
from core.lessons.mistakes.catalogue import MISTAKES
from core.lessons.speed.climb_result import RUNGS
from core.lessons.train.code_page import lines_with
from core.ui import format
from core.ui.source import body, source

ROOT = Path(__file__).parents[2]
FOLDERS = ("*.py", "pages/*.py", "core/**/*.py", "to_device/**/*.py")
FILES = sorted(chain(*map(ROOT.glob, FOLDERS)))
WIDTH = 79  # characters that a code box shows without scrolling sideways
FORM = re.compile(r"(core|to_device)(\.\w+)+:[\w.*]+")
BEGINNING = re.compile(r"""["'](core|to_device)[\w.]*[.:]""")
STARS = {  # what stands for the star where pages show code in a loop
    "core.lessons.checkpoints.round_trip:*": [
        "load_as_saved",
        "load_on_the_cpu",
        "load_for_the_device",
    ],
    "core.lessons.device.idioms:*": ["classic", "with_mps", "any_accelerator"],
    "core.lessons.mistakes.examples.fixtures:*": [
        "batch",
        "new_model",
        "steps",
        "ScaledLoss",
    ],
    "core.models:*": [format.CLASSES[model] for model in MODELS],
    "core.lessons.model.model_to:*": ["copy_of_a_tensor", "module_in_place"],
    "core.lessons.speed.rungs:*": [rung.name for rung in RUNGS],
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


@cache
def nodes() -> list[ast.AST]:
    """Of all files in which the beginning of an address may stand."""
    texts = (file.read_text("utf-8") for file in FILES)
    trees = [ast.parse(text) for text in texts if BEGINNING.search(text)]
    return [node for tree in trees for node in walk(tree)]


def addresses() -> Counter[str]:
    """Every string that has the form of an address, and how often it stands there."""
    texts = Counter(filter(FORM.fullmatch, map(text, nodes())))
    texts.update(mistake.address("*") for mistake in MISTAKES)  # both halves
    return texts


@cache
def defined(module: str) -> set[str]:
    """What a module defines: "function", "Class", "Class.method", "CONSTANT"."""
    file = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    names: set[str] = set()
    for node in ast.parse(read(module)).body if file.exists() else []:
        if isinstance(node, Definition):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            names |= {f"{node.name}.{method.name}" for method in methods}
        if isinstance(node, ast.Assign):
            names |= {ast.unparse(target) for target in node.targets}
    return names


def meant(address: str) -> list[str]:
    """The names that an address may mean: several where it has a star."""
    module, _, name = address.partition(":")
    form = re.compile(re.escape(name).replace(r"\*", r"[^\W_]\w*"))
    return [f"{module}:{name}" for name in filter(form.fullmatch, defined(module))]


def calls(function: str) -> list[tuple[str, ...]]:
    """The arguments of all calls of `function` that are written out, once each."""
    arguments = set()
    for node in nodes():
        if function == "lab" and isinstance(node, ast.Assign):
            tabs = isinstance(node.value, ast.Tuple)  # a lab's class has several
            if tabs and ast.unparse(node.targets[0]) == "code":
                texts = map(text, walk(node))
                arguments |= {(address,) for address in filter(FORM.fullmatch, texts)}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == function:
            first, *others = node.args
            if function in ("show", "code_tabs"):  # any of their arguments
                first, others = node, []
            for address in filter(FORM.fullmatch, map(text, walk(first))):
                stem, star, _ = address.partition("*")
                filled = [stem + name for name in STARS[address]] if star else [address]
                arguments |= {(name, *map(text, others)) for name in filled}
    return sorted(filter(all, arguments))


SHOWING = ("source", "show", "code_tabs", "lab")
WHOLE = sorted(set(chain(*map(calls, SHOWING))))


def test_every_address_is_there() -> None:
    counts = addresses()
    assert counts.total() >= 100
    assert counts["core.training:run"]
    assert counts["core.lessons.mistakes.examples.moving:*_data_not_moved"]
    assert [address for address in counts if not meant(address)] == []


def test_pages_show_code() -> None:
    assert ("core.loops:train_epoch",) in WHOLE
    assert ("core.models:CNN",) in WHOLE
    assert ("core.state_dict:save",) in WHOLE
    assert ("core.lessons.speed.memory:checkpointed",) in WHOLE
    assert ("core.lessons.speed.rungs:textbook",) in calls("body")
    assert ("core.loops:train_epoch", ".to(device)") in calls("lines_with")


@pytest.mark.parametrize("address", [address for (address,) in WHOLE])
def test_shown_code_is_whole(address: str) -> None:
    (node,) = ast.parse(source(address)).body
    assert isinstance(node, Definition)
    assert node.name == re.split(r"[:.]", address)[-1]


def test_shown_code_fits() -> None:
    texts = [source(*arguments) for arguments in WHOLE]
    texts += [body(*arguments) for arguments in calls("body")]
    lines = [line for text in texts for line in text.splitlines()]
    assert [line for line in lines if len(line) > WIDTH] == []


@pytest.mark.parametrize(("address", "part"), calls("lines_with"))
def test_shown_lines_are_there(address: str, part: str) -> None:
    lines = lines_with(address, part).splitlines()
    assert lines
    for line in lines:
        assert part in line
        assert len(line) <= WIDTH
        assert line == line.strip()


def test_what_is_not_there_is_not_shown() -> None:
    with pytest.raises(LookupError, match=r"core\.loops\b.+\btrian_epoch"):
        source("core.loops:trian_epoch")
