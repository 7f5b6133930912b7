import ast
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path

import pytest
import streamlit

from tests.process import python

ROOT = Path(__file__).parents[1]
HOUSES = ("*.py", "pages/*.py", "core/**/*.py", "to_device/**/*.py")
FILES = sorted(chain(*map(ROOT.glob, HOUSES)))
TESTS = sorted(chain(*map(ROOT.glob, ("tests/**/*.py", "tools/**/*.py"))))
NAMES = {  # "core.loops" -> its file
    ".".join(file.relative_to(ROOT).with_suffix("").parts): file
    for file in FILES
    if file.name not in ("__init__.py", "export_template.py", "export_textbook.py")
    and "migrations" not in file.parts  # Alembic's own
}

# Which of the two big libraries a file may import is told by where it is and its name:
# what computes may import torch, what draws or serves may import Streamlit, no file
# both, and all others neither.
COMPUTES = re.compile(
    r"core\.(?!.*(_page|_chart|_result|_verdict)$)(\w+|(data|examples|measure|lessons)\..*)"
    r"|to_device\.(devices|diagnose\.facts|dryrun\..*|sim\..*)"
)
DRAWS = re.compile(r"app|home|pages\..*|core\.(ui|serving)\..*|core\..*(_page|_chart)")

# What the toolkit, which other projects install, never imports: the app and its
# libraries.
OF_THE_APP = {
    *("app", "core", "home", "pages", "tests", "tools"),
    *("altair", "cattrs", "dask", "distributed", "pandas", "sqlalchemy", "streamlit"),
}

# From the ground up. A module imports from its own entry and from those of layers below
# it: what stands side by side, as the lessons do, knows nothing of each other.
OTHER_LESSONS = ["device", "model", "train", "compare", "speed", "scale", "checkpoints"]
LAYERS = (
    ("to_device.builds", "to_device.errors", "to_device.names"),
    ("to_device.gpus",),
    ("to_device.version", "to_device.words"),
    *(("to_device.devices", "to_device.explain", "to_device.nvml", "to_device.sim"),),
    ("to_device.diagnose", "to_device.dryrun", "to_device.launcher"),
    *(("to_device.cli", "to_device.pytest_plugin"), ("to_device.__main__",)),
    ("core.errors", "core.folders", "core.halves"),
    ("core.log", "core.registry"),
    ("core.config",),
    ("core.loss_functions", "core.loops", "core.models"),
    ("core.state_dict", "core.watch"),
    ("core.data",),
    ("core.measure.environment",),
    ("core.devices", "core.results"),
    ("core.measure", "core.steering"),
    ("core.training", "core.store"),
    ("core.jobs", "core.pace"),
    ("core.classroom", "core.script", "core.runs.export"),
    ("core.serving",),
    ("core.ui",),
    ("core.runs",),
    ("core.lessons.evaluate", "core.lessons.mistakes"),  # others show parts of them
    tuple(f"core.lessons.{name}" for name in OTHER_LESSONS),
    ("core.home", "core.classroom.*_chart", "core.examples"),
    ("core.classroom.*_page", "core.bench", "core.run"),
    ("core.idle",),
    ("core.startup",),
    ("app", "home", "pages"),
)
LAYER_OF = {package: i for i, layer in enumerate(LAYERS) for package in layer}

TOO_MANY_LINES, TOO_MANY_OF_A_FUNCTION = 600, 80


def imports(file: Path, walk: Callable = ast.walk) -> Iterator[str]:
    """The modules that a file imports, at its top or later."""
    for node in walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in NAMES else str(node.module) for name in names)


def package(name: str) -> str:
    """The entry in LAYERS that a module belongs to, the most exact one."""
    fitting = [entry for entry in LAYER_OF if fnmatch(f"{name}.", f"{entry}.*")]
    fitting += [entry for entry in LAYER_OF if "*" in entry and fnmatch(name, entry)]
    assert fitting, f"{name} has no place in LAYERS"
    return max(fitting, key=len)


def test_imports_point_down() -> None:
    wrong = []
    for name, file in NAMES.items():
        own = package(name)
        for other in set(imports(file)) & NAMES.keys():
            theirs = package(other)
            if theirs != own and LAYER_OF[theirs] >= LAYER_OF[own]:
                wrong.append(f"{name} imports {other}")
    assert wrong == []


def test_no_imports_go_in_a_circle() -> None:
    graph = {name: set(imports(file)) & NAMES.keys() for name, file in NAMES.items()}
    order = list(TopologicalSorter(graph).static_order())
    assert order.index("core.loops") < order.index("core.training")


@pytest.mark.parametrize(
    ("libraries", "rule"),
    [
        ({"torch", "torchvision"}, COMPUTES),
        ({"streamlit", "altair"}, DRAWS),
    ],
)
def test_a_file_says_what_it_may_import(libraries: set[str], rule: re.Pattern) -> None:
    at_the_top = partial(imports, walk=ast.iter_child_nodes)
    importing = {
        name
        for name, file in NAMES.items()
        if libraries & {other.partition(".")[0] for other in at_the_top(file)}
    }
    assert importing
    assert [name for name in sorted(importing) if not rule.fullmatch(name)] == []


def test_the_toolkit_stands_without_the_app() -> None:
    toolkit = {name: file for name, file in NAMES.items() if name[:4] == "to_d"}
    wrong = [
        f"{name} imports {other}"
        for name, file in toolkit.items()
        for other in imports(file)
        if other.partition(".")[0] in OF_THE_APP
    ]
    assert len(toolkit) > 20
    assert wrong == []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["explain"], 0),
        (["diagnose", "--help"], 0),
        (["diagnose", "-"], 2),
        (["dryrun", "--help"], 0),
        (["dryrun", "train.py"], 2),  # there is no torch
        (["run", "--help"], 2),
    ],
)
def test_where_there_is_only_python_the_toolkit_needs_no_more(
    arguments: list[str], status: int
) -> None:
    """-I and -S leave out site-packages, this folder, and PYTHONPATH."""
    script = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from to_device.cli import main
try:
    status = main({arguments!r})
except SystemExit as end:
    status = end.code
tops = {{name.partition(".")[0] for name in sys.modules}}
others = tops - sys.stdlib_module_names - {{"__main__", "__mp_main__", "to_device"}}
others = {{name for name in others if hasattr(sys.modules[name], "__file__")}}
sys.exit(f"brought {{others}}" if others - {{"core"}} else status)
"""
    text = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    done = python("-I", "-S", "-c", script, input=text, status=status)
    assert "Traceback" not in done.stderr


PUBLIC = {
    "streamlit",
    # Its documentation names these, which are modules or named as modules are.
    *("streamlit.column_config", "streamlit.components", "streamlit.dataframe"),
    "streamlit.delta_generator.DeltaGenerator",  # the type of each container
    "streamlit.errors",
    "streamlit.web.cli",  # the command `streamlit`
}


def of_streamlit(file: Path) -> Iterator[str]:
    """What a file takes from Streamlit: imports, and modules as attributes of `st`."""
    modules = {module.name for module in pkgutil.iter_modules(streamlit.__path__)}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and node.attr in modules:
            yield re.sub(r"^st\.", "streamlit.", ast.unparse(node))


def test_two_modules_know_the_private_parts_of_streamlit() -> None:
    knowing = {
        name
        for name, file in NAMES.items()
        for part in of_streamlit(file)
        if part.startswith("streamlit.") and part not in PUBLIC
    }
    assert knowing == {
        "core.serving.streamlit_delivery",
        "core.serving.streamlit_internals",
    }


def test_the_server_side_does_not_import_torch() -> None:
    names = [name for name in NAMES if name not in ("app", "home")]
    names = [name for name in names if not name.startswith("pages.")]
    without_torch = [name for name in names if not COMPUTES.fullmatch(name)]
    script = f"""
import importlib, sys
for name in {without_torch!r}:
    importlib.import_module(name)
    brought = {{"torch", "torchvision"}} & set(sys.modules)
    if brought:
        sys.exit(f"{{name}} imports {{brought}}")
"""
    python("-c", script)


def too_long(file: Path) -> Iterator[str]:
    """The file, and its functions, if they have too many lines."""
    text, path = file.read_text("utf-8"), file.relative_to(ROOT).as_posix()
    if len(text.splitlines()) >= TOO_MANY_LINES:
        yield path
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            if node.end_lineno - node.lineno + 1 >= TOO_MANY_OF_A_FUNCTION:
                yield f"{path}:{node.name}"


def test_files_and_functions_are_short() -> None:
    assert set(chain(*map(too_long, FILES + TESTS))) == set()


def test_tests_stand_where_their_modules_stand() -> None:
    """tests/app/jobs/test_queue.py is of core/jobs/queue.py, test_queue_order.py too.

    Tests of whole pages and of the whole server have folders of their own.
    """
    wrong = []
    for file in ROOT.glob("tests/*/**/test_*.py"):
        path = file.relative_to(ROOT / "tests")
        if path.parts[1] in ("e2e", "pages"):
            continue
        houses = {"app": "core", "toolkit": "to_device"}
        house = houses.get(path.parts[0], path.parts[0])
        parts = file.stem.split("_")[1:]
        folder = ROOT.joinpath(house, *path.parent.parts[1:])
        names = ("_".join(parts[:n]) for n in range(1, len(parts) + 1))
        paths = (folder / name for name in names)  # a module, or a package of them
        if not any(path.is_dir() or path.with_suffix(".py").exists() for path in paths):
            wrong.append(path.as_posix())
    assert sorted(wrong) == ["app/test_addresses.py", "app/test_teaching.py"]


def test_no_test_imports_another() -> None:
    line = re.compile(r"^ *(from|import) tests\b.*\btest_", re.MULTILINE)
    assert [file.name for file in TESTS if line.search(file.read_text("utf-8"))] == []


def test_packages_say_nothing_by_themselves() -> None:
    files = [file for file in FILES + TESTS if file.name == "__init__.py"]
    assert files
    assert [file for file in files if file.read_text("utf-8")] == []


def test_the_app_is_for_this_machine_alone() -> None:
    env = {key: value for key, value in os.environ.items() if "STREAMLIT" not in key}
    command = [sys.executable, "-m", "streamlit", "config", "show"]
    config = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert '\naddress = "127.0.0.1"\n' in config.stdout
