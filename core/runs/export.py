"""A run to take home: as a standalone script, a notebook, or a command line.

The script is made from a template: core.runs.export_textbook for a run with a
DataLoader, and core.runs.export_template for any other run. Branches that the run
doesn't take are removed, and the source of everything that the template uses from core
is inserted. Nothing here imports torch.
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
from core.folders import ROOT
from core.results import RunResult
from to_device.names import SIMULATED
from to_device.words import Words

TEMPLATE = Path(__file__).with_name("export_template.py")
TEXTBOOK = Path(__file__).with_name("export_textbook.py")  # uses a DataLoader
SPRITES = ROOT / "core/data/sprites.py"  # scripts that train on sprites import it
WIDTH = 79
ALWAYS = ("task", "model", "device", "epochs", "batch_size", "learning_rate", "seed")
words = Words(__file__)


class Section(NamedTuple):
    """A section of the script, which becomes two cells of the notebook."""

    title: str
    text: str  # lines of comment before the code
    code: str


def command(config: RunConfig) -> str:
    """The command line that repeats the run with this app's code."""
    recipe = RunConfig.with_recipe(task=config.task, model=config.model)
    parts = ["python -m core.run"]
    for name, value in asdict(config).items():
        if name == "host":
            continue  # the command runs on the machine where it is typed
        if name in ALWAYS or value != getattr(recipe, name):
            text = str(value).lower() if isinstance(value, bool) else value
            parts.append(f"--{name.replace('_', '-')} {text}")
    return " ".join(parts)


def script(result: RunResult) -> str:
    """The run as a program, which needs only torch (and torchvision, for the data)."""
    paragraphs = _introduction(result).split("\n\n")
    about = "\n\n".join(textwrap.fill(text, WIDTH - 3) for text in paragraphs)
    steps = [f"# %% {title}\n{text}{code}" for title, text, code in sections(result)]
    return "\n\n".join([f'"""{about}\n"""', *steps]) + "\n"


def heart(result: RunResult) -> str:
    """The part of the script that trains, which the page shows."""
    return "\n\n".join(section.code for section in sections(result)[-3:-1])


def notebook(result: RunResult) -> str:
    """The script as a Jupyter notebook in format 4.5.

    Each section of the script becomes a cell with text and a cell with code.
    """
    parts = [("markdown", f"# {_introduction(result)}")]
    steps = sections(result)
    if result.config.task == "sprites":  # put sprites.py into the notebook's one file
        for old, new in (("import sprites\n", ""), ("sprites.draw", "draw")):
            steps = [step._replace(code=step.code.replace(old, new)) for step in steps]
        text = SPRITES.read_text("utf-8")
        steps.insert(1, Section("The drawing", "This code draws the sprites.", text))
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


def _introduction(result: RunResult) -> str:
    config, here = result.config, result.environment
    reached = (
        f"the model classified {result.test_correct:,} of {result.test_total:,} test "
        f"images correctly ({result.test_accuracy:.2%})"
        if config.has_images
        else f"the model's R² on {result.test_total:,} test points was {result.r2:.4f} "
        f"and its RMSE was {result.rmse:.4f}"
    )
    model = words.table("export.models")[config.model]
    facts = {
        "reached": reached,
        "device": here.device_name,
        "backend": here.backend,
        "threads": f"{here.threads} CPU thread{'s' * (here.threads > 1)}",
        "torch": here.torch,
        "python": here.python,
    }
    if _is_textbook(config):
        about = words("export.textbook", **facts)
    else:
        about = words("export.reached", **facts)
        if config.feed == "dataloader":
            about += f" {words('export.loader')}"
    if result.changes:
        about += f"\n\n{words('export.steered')}"
    return f"Train {model} on {words.table('export.tasks')[config.task]}.\n\n{about}"


def _is_textbook(config: RunConfig) -> bool:
    return config.feed == "dataloader" and config.has_images


def sections(result: RunResult) -> list[Section]:
    """The script's sections, in the order in which they run."""
    changes = tuple((change.step, change.learning_rate) for change in result.changes)
    text = inlined(result.config, result.environment.threads, changes)
    section = re.compile(r"^# %% (.+)\n((?:#.*\n)*)((?:(?!# %%).*\n)*)", re.MULTILINE)
    return [
        Section(title, about, code.strip())
        for title, about, code in section.findall(text)
    ]


@lru_cache(32)  # a page that shows a run calls this several times
def inlined(
    config: RunConfig,
    threads: int,
    changes: tuple[tuple[int, float], ...] = (),
    shuffle: bool = False,
) -> str:
    """The template, filled in with these settings and with the source used from core.

    `changes` has the learning rates that were set by hand: pairs of the steps
    made before a change, and the new rate. With `shuffle`, the DataLoader of
    the script shuffles the images; otherwise, the script repeats the run's
    order.
    """
    constants = {name.upper(): value for name, value in asdict(config).items()}
    constants |= {"THREADS": threads, "SHUFFLE": shuffle, "CHANGES": dict(changes)}
    if config.device == SIMULATED:
        constants["DEVICE"] = "cpu"  # the simulated device computes on the CPU
    textbook = _is_textbook(config)
    template = TEXTBOOK if textbook else TEMPLATE
    text = _decide(template.read_text(encoding="utf-8"), constants)
    sources = [text]
    for module in re.findall(r"# inline (\S+)", text):
        name = module.rpartition(".")[2]
        sources.append((ROOT / f"{module.replace('.', '/')}.py").read_text("utf-8"))
        if textbook:  # where ToTensor has already made floats of the pixels
            sources[-1] = sources[-1].replace("as_floats(images)", "images")
        for table, key in re.findall(rf"\b({name}\.[A-Z]+\[(\w+)\])", text):
            entry = re.findall(rf'"{constants[key]}": (.+),', sources[-1])[0]
            text = text.replace(table, f"{name}.{entry}")
        names = set(re.findall(rf"\b{name}\.(\w+)", text))
        text = text.replace(f"# inline {module}\n", definitions(sources[-1], names))
        text = re.sub(rf"\b{name}\.(?=\w)", "", text)
    used = names_in(ast.parse(text))
    values = {name: repr(value).replace("'", '"') for name, value in constants.items()}
    if changes:
        lines = "".join(f"    {step}: {rate},\n" for step, rate in changes)
        values["CHANGES"] = f"{{\n{lines}}}"
    for name, value in values.items():
        line = f"{name} = {value}"
        text = re.sub(rf"^{name} = .*?(?=  #|$)", line, text, flags=re.MULTILINE)
    constant = re.compile(r"^([A-Z_]+) = .*\n", re.MULTILINE)
    text = constant.sub(lambda line: line[0] if line[1] in used else "", text)
    # Keep only the first line of each docstring.
    text = re.sub(r'("""[^"\n]+)\n[^"]*"""', r'\1"""', text)
    text = re.sub(r"\n(\s*\n)+", "\n\n", text)
    _, settings, rest = text.partition("# %% Settings")
    return f"# %% Imports\n{_imports(sources, used)}\n\n{settings}{rest}"


def _decide(text: str, constants: Mapping[str, Any]) -> str:
    """Replace each "if" about settings by the branch that is taken."""
    lines, decided = text.splitlines(keepends=True), list[ast.If]()
    for node in ast.walk(ast.parse(text)):  # what is around others comes first
        if isinstance(node, ast.If) and names_in(node.test) <= constants.keys():
            ends = (
                each.end_lineno or 0 for each in decided if each.lineno < node.lineno
            )
            if node.lineno > max(ends, default=0):
                decided.append(node)
    for node in sorted(decided, key=lambda node: -node.lineno):
        holds = eval(ast.unparse(node.test), {**constants})
        end = node.body[-1].end_lineno
        part = lines[node.lineno : end] if holds else lines[end : node.end_lineno]
        branch = re.sub(r"\A *else:\n", "", "".join(part))
        branch = re.sub(r"\Aelif", "if", textwrap.dedent(branch))
        branch = textwrap.indent(branch, " " * node.col_offset)
        lines[node.lineno - 1 : node.end_lineno] = [branch]
    return _decide("".join(lines), constants) if decided else text


def definitions(source: str, names: set[str]) -> str:
    """The definitions of these names in a module, and of the names they need."""
    lines, body = source.splitlines(keepends=True), ast.parse(source).body
    starts = [0, *(node.end_lineno or 0 for node in body)]
    parts = [
        (node, "".join(lines[start : node.end_lineno]))
        for node, start in zip(body, starts, strict=False)
    ]
    before: set[str] = set()
    needed: list[tuple[ast.stmt, str]] = []
    while before != names:
        before = names
        needed = [(node, text) for node, text in parts if _defined(node) & names]
        names = names.union(*(names_in(node) for node, _ in needed))
    return "".join(text for _, text in needed)


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement defines: a function, a class, or constants."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    return names_in(node, ast.Store)


def names_in(tree: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}


def _imports(sources: list[str], used: set[str]) -> str:
    """The import lines of these modules for the `used` names; torch comes last."""
    imported: dict[str, set[str]] = {}  # names by module; whole modules under ""
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} & used
            module = getattr(node, "module", "")
            if module.startswith("core"):  # core.data.sprites: the script has a copy
                module = ""
            imported[module] = imported.get(module, set()) | names
    lines = [f"import {name}" for name in sorted(imported.pop(""))]
    for module in sorted(filter(imported.get, imported)):
        lines.append(f"from {module} import {', '.join(sorted(imported[module]))}")
    lines.sort(key=lambda line: "torch" in line)
    return "\n".join(lines).replace("\nimport torch", "\n\nimport torch")
