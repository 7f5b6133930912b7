"""The house rules: what may import what, and how long a file may be."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest

from tests.process import python

ROOT = Path(__file__).parents[1]
FILES = sorted(chain(*map(ROOT.glob, ("*.py", "pages/*.py", "core/**/*.py"))))
TESTS = sorted(ROOT.glob("tests/**/*.py"))
NAMES = {  # "core.loops" -> its file
    ".".join(file.relative_to(ROOT).with_suffix("").parts): file
    for file in FILES
    if file.name != "__init__.py" and "migrations" not in file.parts  # Alembic's own
}

# From the ground up. A module imports from its own package and from layers below it:
# what stands side by side, as the lessons do, knows nothing of each other.
LAYERS = (
    ("core.errors", "core.log"),
    ("core.config", "core.criteria", "core.loops", "core.models"),
    ("core.state_dict", "core.watch"),
    ("core.data",),
    ("core.measure.environment",),
    ("core.devices", "core.results"),
    ("core.loss_meter", "core.measure"),
    ("core.training", "core.store"),
    ("core.jobs",),
    (
        *("core.machine", "core.move", "core.evaluate", "core.compare"),
        *("core.speed", "core.scale", "core.checkpoints", "core.mistakes"),
        *("core.train", "core.classroom"),
    ),
    ("core.bench", "core.run", "core.ui"),
    ("app", "home", "pages"),
)
LAYER_OF = {package: i for i, layer in enumerate(LAYERS) for package in layer}

# What the web server imports, and what travels between it and the workers.
WITHOUT_TORCH = [
    *("core.config", "core.errors", "core.jobs.engine", "core.jobs.worker"),
    *("core.data.curve", "core.data.fashion_mnist", "core.checkpoints.export"),
    *(name for name in NAMES if name.endswith((".results", ".rows"))),
    *(
        name
        for name in NAMES
        if name.startswith(("core.classroom.", "core.store.", "core.ui."))
    ),
]

TOO_MANY_LINES, TOO_MANY_OF_A_FUNCTION = 400, 60


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, at its top or later."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{each.name}" for each in node.names)
            yield from (name if name in NAMES else str(node.module) for name in names)


def package(name: str) -> str:
    """The entry in LAYERS that a module belongs to, the most exact one."""
    fitting = [each for each in LAYER_OF if f"{name}.".startswith(f"{each}.")]
    assert fitting, f"{name} has no place in LAYERS"
    return max(fitting, key=len)


def test_imports_point_down() -> None:
    """A module imports from its own package and from layers below: nothing else."""
    wrong = []
    for name, file in NAMES.items():
        own = package(name)
        for other in set(imports(file)) & NAMES.keys():
            theirs = package(other)
            if theirs != own and LAYER_OF[theirs] >= LAYER_OF[own]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_no_imports_go_in_a_circle() -> None:
    """Not even where they stand inside of functions; CycleError names the modules."""
    graph = {name: set(imports(file)) & NAMES.keys() for name, file in NAMES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("core.loops") < order.index("core.training")


def test_only_the_pages_import_streamlit() -> None:
    """`core` below `core.ui` runs where there is no streamlit."""
    found = {
        package(name)
        for name, file in NAMES.items()
        for other in imports(file)
        if other.partition(".")[0] == "streamlit"
    }
    assert found == {"app", "core.ui", "home", "pages"}


def test_the_server_side_does_not_import_torch() -> None:
    """The web server starts without torch, and nothing that it imports brings it in."""
    script = f"""
import importlib, sys
for name in {WITHOUT_TORCH!r}:
    importlib.import_module(name)
    found = {{"torch", "torchvision", "torchmetrics"}} & set(sys.modules)
    if found:
        sys.exit(f"{{name}} imports {{found}}")
"""
    python("-c", script)


def too_long(file: Path, root: Path = ROOT) -> Iterator[str]:
    """The file, and its functions, if they have too many lines."""
    text, path = file.read_text("utf-8"), file.relative_to(root).as_posix()
    if len(text.splitlines()) >= TOO_MANY_LINES:
        yield path
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno + 1 >= TOO_MANY_OF_A_FUNCTION:
                yield f"{path}:{node.name}"


def test_files_and_functions_are_short() -> None:
    """Who reads one has it on a few screens."""
    assert set(chain(*map(too_long, FILES + TESTS))) == set()


@pytest.mark.parametrize("lines", [59, 60])
def test_what_is_too_long_is_noticed(tmp_path: Path, lines: int) -> None:
    """By one line."""
    file = tmp_path / "file.py"
    file.write_text("def long():\n" + "    pass\n" * (lines - 1))
    assert list(too_long(file, tmp_path)) == ["file.py:long"] * (lines >= 60)
    file.write_text("\n" * (lines + 340))
    assert list(too_long(file, tmp_path)) == ["file.py"] * (lines >= 60)


def test_tests_stand_where_their_modules_stand() -> None:
    """tests/speed/test_climb.py is of core/speed/climb.py, test_climb_cpu.py too.

    Those of whole pages, of the server and of the tree have places of their own, and
    so has what needs an accelerator.
    """
    wrong = []
    for file in TESTS:
        path = file.relative_to(ROOT / "tests")
        apart = path.parts[0] in ("accelerator", "e2e", "load", "pages")
        if apart or not file.name.startswith("test_"):
            continue
        parts, folder = file.stem.split("_")[1:], ROOT / "core" / path.parent
        names = ("_".join(parts[:n]) for n in range(1, len(parts) + 1))
        found = (folder / name for name in names)  # a module, or a package of them
        if not any(each.is_dir() or each.with_suffix(".py").exists() for each in found):
            wrong.append(path.as_posix())
    assert wrong == ["test_addresses.py", "test_house.py"]


def test_no_test_imports_another() -> None:
    """What tests share stands in modules beside them, such as tests.samples."""
    line = re.compile(r"^ *(from|import) tests\b.*\btest_", re.MULTILINE)
    assert [file.name for file in TESTS if line.search(file.read_text("utf-8"))] == []


def test_packages_say_nothing_by_themselves() -> None:
    """What a package is for stands in its modules."""
    files = [file for file in FILES + TESTS if file.name == "__init__.py"]
    assert files
    assert [file for file in files if file.read_text("utf-8")] == []


def test_the_app_is_for_this_machine_alone() -> None:
    """However it is started, unless the environment says otherwise."""
    env = {key: value for key, value in os.environ.items() if "STREAMLIT" not in key}
    command = [sys.executable, "-m", "streamlit", "config", "show"]
    said = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert '\naddress = "127.0.0.1"\n' in said.stdout
