"""A run to take home: a standalone script, the same as a notebook, a command line.

Text in, text out, without torch. The script is core.checkpoints.script_template without
what the run doesn't use, and with the source of all that it uses of core.
"""

import ast
import json
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from core.config import RunConfig
from core.results import RunResult

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(__file__).with_name("script_template.py")
SPRITES = ROOT / "core/data/sprites.py"  # which a script on sprites imports
WIDTH = 79
ALWAYS = ("task", "model", "device", "epochs", "batch_size", "learning_rate", "seed")
TASKS = {
    "fashion-mnist": "Fashion-MNIST",
    "sprites": "the sprites",
    "regression": "a noisy curve",
}
MODELS = {
    "ann": "a fully connected network (784-128-64-10)",
    "cnn": "a convolutional network (four convolutions)",
    "simple": "a small network (1-64-64-1)",
}


class Section(NamedTuple):
    """A step of the script, or two cells of the notebook."""

    title: str
    text: str  # what a reader should know before the code; lines of comment
    code: str


def command(config: RunConfig) -> str:
    """The command line that repeats the run with this app's code."""
    recipe = RunConfig.with_recipe(task=config.task, model=config.model)
    words = ["python -m core.run"]
    for name, value in asdict(config).items():
        if name == "host":
            continue  # it is wherever this is run
        if name in ALWAYS or value != getattr(recipe, name):
            said = str(value).lower() if isinstance(value, bool) else value
            words.append(f"--{name.replace('_', '-')} {said}")
    return " ".join(words)


def script(result: RunResult) -> str:
    """A program that needs only torch (and torchvision, to download the data)."""
    paragraphs = _introduction(result).split("\n\n")
    about = "\n\n".join(textwrap.fill(each, WIDTH - 3) for each in paragraphs)
    steps = [f"# %% {title}\n{text}{code}" for title, text, code in sections(result)]
    return "\n\n".join([f'"""{about}\n"""', *steps]) + "\n"


def heart(result: RunResult) -> str:
    """The part of the script that trains, for the page."""
    return "\n\n".join(each.code for each in sections(result)[-3:-1])


def notebook(result: RunResult) -> str:
    """The same as a Jupyter notebook, format 4.5: a text and a code cell a section."""
    parts = [("markdown", f"# {_introduction(result)}")]
    steps = sections(result)
    if result.config.task == "sprites":  # a notebook is one file
        steps = [each._replace(code=_without_sprites(each.code)) for each in steps]
        text = SPRITES.read_text("utf-8")
        steps.insert(1, Section("The drawing", "What draws the sprites.", text))
    for title, about, code in steps:
        text = re.sub("^# ", "", about, flags=re.MULTILINE)
        parts += [("markdown", f"## {title}\n\n{text}".strip()), ("code", code)]
    cells: list[dict[str, Any]] = [
        {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        | {"source": text.splitlines(keepends=True)}
        | ({"outputs": [], "execution_count": None} if kind == "code" else {})
        for number, (kind, text) in enumerate(parts)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1)


def _without_sprites(code: str) -> str:
    """With the drawing itself in the place of its import."""
    return code.replace("import sprites\n", "").replace("sprites.draw", "draw")


def _introduction(result: RunResult) -> str:
    config, here = result.config, result.environment
    reached = (
        f"it classified {result.test_correct:,} of {result.test_total:,} test images "
        f"correctly, {result.test_accuracy:.2%}"
        if config.has_images
        else f"its R² on {result.test_total:,} test points was {result.r2:.4f}, its "
        f"RMSE {result.rmse:.4f}"
    )
    threads = f"{here.threads} CPU thread{'s' * (here.threads > 1)}"
    feed = (
        " That run took its batches from a DataLoader; for one seed they are the same, "
        "only slower to come by."
    )
    return (
        f"Train {MODELS[config.model]} on {TASKS[config.task]}.\n\n"
        f"When this was exported, {reached}: measured on {here.device_name} "
        f"({here.backend}), {threads}, torch {here.torch}, Python "
        f"{here.python}. On the same machine with the same versions and data you "
        "get the same number, to the last digit. Elsewhere the last digits may differ: "
        "sums are taken in another order, and convolutions on NVIDIA GPUs may round to "
        f"TF32.{feed * (config.feed == 'dataloader')}"
    )


def sections(result: RunResult) -> list[Section]:
    """The program, in the order in which it is read and runs."""
    text = inlined(result.config, result.environment.threads)
    section = re.compile(r"^# %% (.+)\n((?:#.*\n)*)((?:(?!# %%).*\n)*)", re.MULTILINE)
    return [
        Section(title, about, code.strip())
        for title, about, code in section.findall(text)
    ]


# From the template to the script


@lru_cache(32)  # a page that shows a run asks for it several times
def inlined(config: RunConfig, threads: int) -> str:
    """The template with these settings, and with the source of all it uses of core."""
    known = {name.upper(): value for name, value in asdict(config).items()}
    known["THREADS"] = threads
    text = _decided(TEMPLATE.read_text(encoding="utf-8"), known)
    sources = [text]
    for module in re.findall(r"# inline (\S+)", text):
        name = module.rpartition(".")[2]
        sources.append((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        for table, key in re.findall(rf"\b({name}\.[A-Z]+\[(\w+)\])", text):
            chosen = re.findall(rf'"{known[key]}": (.+),', sources[-1])[0]
            text = text.replace(table, f"{name}.{chosen}")
        wanted = set(re.findall(rf"\b{name}\.(\w+)", text))
        text = text.replace(f"# inline {module}\n", _definitions(sources[-1], wanted))
        text = re.sub(rf"\b{name}\.(?=\w)", "", text)
    used = _names(ast.parse(text))
    for name, value in known.items():
        said = repr(value).replace("'", '"')
        text = re.sub(rf"^{name} = \S+", f"{name} = {said}", text, flags=re.MULTILINE)
    constant = re.compile(r"^([A-Z_]+) = .*\n", re.MULTILINE)
    text = constant.sub(lambda line: line[0] if line[1] in used else "", text)
    text = re.sub(r'("""[^"\n]+)\n[^"]*"""', r'\1"""', text)  # one line is enough
    text = re.sub(r"\n(\s*\n)+", "\n\n", text)
    _, settings, rest = text.partition("# %% Settings")
    return f"# %% Imports\n{_imports(sources, used)}\n\n{settings}{rest}"


def _decided(text: str, known: Mapping[str, Any]) -> str:
    """Of each "if" about settings, the branch that holds, with its comments."""
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.If) and _names(node.test) <= known.keys():
            holds, end = (
                eval(ast.unparse(node.test), {**known}),
                node.body[-1].end_lineno,
            )
            branch = lines[node.lineno : end] if holds else lines[end : node.end_lineno]
            kept = re.sub(r"\A *else:\n", "", "".join(branch))
            kept = re.sub(r"\Aelif", "if", textwrap.dedent(kept))
            kept = textwrap.indent(kept, " " * node.col_offset)
            lines[node.lineno - 1 : node.end_lineno] = [kept]
            return _decided("".join(lines), known)
    return text


def _definitions(source: str, wanted: set[str]) -> str:
    """What a module defines under these names, with all of it that they need."""
    lines, body = source.splitlines(keepends=True), ast.parse(source).body
    starts = [0, *(node.end_lineno or 0 for node in body)]
    parts = list(zip(body, starts, strict=False))
    before: set[str] = set()
    while before != wanted:
        before = wanted
        kept = [(node, start) for node, start in parts if _defined(node) & wanted]
        wanted = wanted.union(*(_names(node) for node, _ in kept))
    return "".join("".join(lines[start : node.end_lineno]) for node, start in kept)


def _defined(node: ast.stmt) -> set[str]:
    """The name of a function or a class, or those of constants."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return _names(node, ast.Store)


def _names(tree: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def _imports(sources: list[str], used: set[str]) -> str:
    """What these modules import, as far as it is used; torch comes last."""
    found: dict[str, set[str]] = {}  # names by module; whole modules under ""
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} & used
            module = getattr(node, "module", "")
            if module.startswith("core"):  # the file beside the script
                module = ""
            found[module] = found.get(module, set()) | names
    lines = [f"import {name}" for name in sorted(found.pop(""))]
    for module in sorted(filter(found.get, found)):
        lines.append(f"from {module} import {', '.join(sorted(found[module]))}")
    lines.sort(key=lambda line: "torch" in line)
    return "\n".join(lines).replace("\nimport torch", "\n\nimport torch")
