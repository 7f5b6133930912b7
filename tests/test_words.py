import ast
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from to_device.words import Words

ROOT = Path(__file__).parents[1]
LINE = 88  # characters
FILES = sorted(
    [*ROOT.glob("core/**/words.toml"), *ROOT.glob("to_device/**/words.toml")]
)


def keys(node: object, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The ways to all texts and lists below a node."""
    if isinstance(node, dict):
        for name, below in node.items():
            yield from keys(below, (*way, name))
    else:
        yield way


def used(file: Path) -> set[str]:
    """The keys in the calls `words("…")` and `words.table("…")` beside the file.

    A lab in race_page.py takes the whole table "race", or that of its own `name`.
    """
    labs = {
        assigned.value.value if assigned else module.stem.removesuffix("_page")
        for module in file.parent.glob("*_page.py")
        for node in ast.parse(module.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and "Lab" in map(ast.unparse, node.bases)
        for assigned in [name_of(node)]
    }
    return labs | {
        node.args[0].value
        for module in file.parent.glob("*.py")
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("words", "words.table")
        and isinstance(node.args[0], ast.Constant)
    }


def name_of(lab: ast.ClassDef) -> ast.Assign | None:
    """The line `name = "modes"` of a lab's class."""
    lines = (line for line in lab.body if isinstance(line, ast.Assign))
    return next((e for e in lines if ast.unparse(e.targets[0]) == "name"), None)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_every_key_is_there_and_used(file: Path) -> None:
    texts, called = tomllib.loads(file.read_text("utf-8")), used(file)
    for way in keys(texts):
        assert {*accumulate(way, "{}.{}".format)} & called, f"{way} is not used"
    words = Words(str(file))
    for key in called:
        words.table(key)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_a_text_of_a_line_stands_beside_its_widget(file: Path) -> None:
    """Unless several places use it, or a whole table is used at once."""
    words = Words(str(file))
    code = [*file.parent.glob("*.py"), *ROOT.glob("tests/**/*.py")]
    texts = [module.read_text("utf-8") for module in code]
    keys_in_use = used(file)
    for key in keys_in_use:
        text, places = words.table(key), sum(t.count(f'"{key}"') for t in texts)
        if any(key.startswith(f"{table}.") for table in keys_in_use):
            continue
        if isinstance(text, str) and places == 1:
            assert len(text) > LINE or "\n" in text, key


def test_a_text_has_its_fields_filled(tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text('[race]\nhelp = "{count} heats"\n', "utf-8")
    words = Words(str(tmp_path / "race_page.py"))
    assert words("race.help", count=5) == "5 heats"
    assert words.table("race") == {"help": "{count} heats"}
    with pytest.raises(KeyError):
        words("race.text")
