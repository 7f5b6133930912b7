"""docs/teaching.md names what is there: a teacher reads it word by word."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from core.ui import course

ROOT = Path(__file__).parents[2]
TITLES = {page.title: page.file for page in course.PAGES} | {"Home": "home.py"}
# What a page shows beside what its own folder says.
FOLDERS = {"Home": ["home"], "Class": ["classroom"], "Teacher": ["classroom"]}
SHARED = ["ui", "runs"]
NAME = re.compile(r"\*\*(.+?)\*\*|(?<!\*)\*([^*]+?)\*(?!\*)", re.DOTALL)


def blocks(text: str) -> Iterator[str]:
    """Rows of tables, list items and paragraphs, without code."""
    text = re.sub(r"^ *```.*?```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from re.split(r"\n\s*\n|\n(?=\||\d+\. |- )", text)


def pages_of(block: str) -> list[str]:
    """The pages that a block names: in bold, or in a cell of their own, or there."""
    bold = [name for name, _ in NAME.findall(block)]
    cells = [part for cell in block.split("|") for part in cell.strip().split(", ")]
    if block.startswith("|"):
        cells += re.findall(r"\w+", block)
    return [title for title in TITLES if title in bold + cells]


@cache
def labels(title: str) -> str:
    """All that the page of that title may write, as far as its code has it."""
    folder = FOLDERS.get(title, [f"lessons/{title.lower()}", "lessons"])[:1]
    files = [ROOT / TITLES[title], ROOT / "content/course.toml"]
    for place in (*folder, *SHARED):
        files += (ROOT / "core" / place).rglob("*.*")
    files += [ROOT / "core/words.toml"]
    files += [ROOT / "content/mistakes.toml"] if title == "Mistakes" else []
    return "\n".join(text for file in files for text in texts(file)).replace("`", "")


def texts(file: Path) -> Iterator[str]:
    if file.suffix == ".py":
        tree = ast.parse(file.read_text("utf-8"))
        docstrings = {id(e.value) for e in ast.walk(tree) if isinstance(e, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                yield str(node.value)
    elif file.suffix == ".toml":
        yield from values(tomllib.loads(file.read_text("utf-8")))


def values(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for below in node.values() if isinstance(node, dict) else node:
            yield from values(below)


def named(file: str) -> list[tuple[str, str]]:
    """The names in bold or italics, each with the block that it stands in."""
    return [
        (" ".join((bold or italic).split()), block)
        for block in blocks((ROOT / "docs" / file).read_text("utf-8"))
        for bold, italic in NAME.findall(block)
    ]


@pytest.mark.parametrize(("name", "block"), named("teaching.md"))
def test_a_name_in_the_plan_is_on_the_page_that_stands_beside_it(name, block):
    if name in TITLES or name in ("bold", "italics"):
        return
    pages = pages_of(block)
    assert pages, f"no page is named beside {name!r}: {block}"
    word = re.compile(rf"(?<!\w){re.escape(name.replace('`', ''))}(?!\w)")
    assert any(word.search(labels(title)) for title in pages), f"{name!r}: {pages}"


def test_the_plan_has_names_and_its_lessons_are_in_the_order_of_the_course():
    text = (ROOT / "docs/teaching.md").read_text("utf-8")
    assert len(named("teaching.md")) > 60
    plan = text.partition("## 90 minutes")[2].partition("## Half")[0]
    rows = re.findall(r"^\| \d+ \| (\w+) \|", plan, re.MULTILINE)
    order = [lesson.title for lesson in course.LESSONS]
    lessons = [order.index(title) for title in rows if title in order]
    assert lessons == sorted(lessons)
