import ast
import inspect
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from core import registry
from core.jobs.job import resolve
from core.lessons.compare import race_result
from core.registry import CLASSES, JOBS
from core.store import codec
from tests.app import samples
from tests.app.pages.walk import all_labs
from tests.process import ROOT, python

FILES = sorted(ROOT.glob("core/**/*.py"))
# These take the function's address from whoever uses them.
GENERAL = ("core.idle", "core.ui.job_panel", "core.ui.lab")


def calls(file: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            yield node


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def test_each_name_of_a_class_leads_to_the_class_and_back():
    for name in CLASSES:
        assert registry.name_of_class(registry.class_of(name)) == name


def test_each_stored_class_has_one_name_and_the_name_has_one_class():
    marked = Counter(
        (module_name(file), ast.literal_eval(call.args[0]))
        for file in FILES
        for call in calls(file)
        if ast.unparse(call.func) == "stored"
    )
    assert marked == Counter((module, name) for name, module in CLASSES.items())


def test_each_name_of_a_job_leads_to_a_function_and_back():
    assert len(set(JOBS.values())) == len(JOBS)
    for name, address in JOBS.items():
        assert inspect.isfunction(resolve(address))
        assert registry.name_of_job(registry.address_of_job(name)) == name


def outermost(hint: Any) -> set[type]:
    """The dataclasses in a type hint, without those of their fields."""
    if is_dataclass(hint):
        return {hint}  # type: ignore[arg-type]
    return set().union(*map(outermost, get_args(hint)))


@pytest.mark.parametrize("name", JOBS)
def test_what_a_job_takes_and_returns_can_be_stored(name):
    hints = get_type_hints(resolve(JOBS[name]))
    hints.pop("watch", None)
    for kind in set().union(*map(outermost, hints.values())):
        assert registry.name_of_class(kind) in CLASSES


def submitted() -> Iterator[str]:
    """The address of each function that a page makes a job of."""
    for file in FILES:
        if (module := module_name(file)) in GENERAL:
            continue
        for call in calls(file):
            function = ast.unparse(call.func)
            if function in ("JobPanel", "engine().submit", "KINDS.add"):
                names = vars(import_module(module))
                yield eval(ast.unparse(call.args[0]), names)
    yield from (lab.address for lab in all_labs())


def test_each_job_that_a_page_submits_has_a_name():
    found = set(submitted())
    kinds = ("run", "ladder", "download", "race", "evaluation")
    assert {JOBS[kind] for kind in kinds} <= found
    own = {address for address in found if address.startswith("core.")}
    assert own - set(JOBS.values()) == set()


def test_a_job_of_the_app_without_a_name_is_refused():
    with pytest.raises(LookupError):
        registry.name_of_job("core.lessons.extra.sums:measure")
    elsewhere = "tools.accelerator.faults:hold"
    assert registry.name_of_job(elsewhere) == elsewhere


def test_a_class_that_moves_reads_what_was_stored_before(monkeypatch):
    text = codec.dumps(samples.RACE)
    moved = ModuleType("elsewhere.sprint")
    monkeypatch.setitem(sys.modules, moved.__name__, moved)
    source = Path(str(race_result.__file__)).read_text("utf-8")
    exec(source.replace("class Race:", "class Sprint:"), vars(moved))
    monkeypatch.setitem(CLASSES, "race", moved.__name__)
    sprint = codec.loads(text, "The race")
    assert type(sprint) is moved.Sprint
    assert vars(sprint).keys() == vars(samples.RACE).keys()
    assert codec.dumps(sprint) == text


def test_reading_what_is_stored_imports_no_torch():
    python(
        "-c",
        f"""
import sys
from core import registry
for name in {list(CLASSES)!r}:
    registry.class_of(name)
assert "torch" not in sys.modules
""",
    )
