"""Each remedy of errors.toml that can be tried here ends the error that it explains."""

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from core.halves import MARK
from tests.process import python
from to_device.explain.explainer import explain, knowledge, of_cause

FOLDER = Path(__file__).with_name("remedies")
SILENT = ("silent", "questions", "learning", "forums", "networks")


def programs():
    """The module and the lines of each function with two halves, by its name."""
    for file in FOLDER.glob("*.py"):
        text = file.read_text("utf-8")
        for node in ast.parse(text).body:
            lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
            if isinstance(node, ast.FunctionDef) and any(map(MARK.search, lines)):
                yield node.name, (file.stem, lines)


PROGRAMS = dict(programs())


@pytest.fixture(scope="module")
def ended():
    """For each program's name, what each half said before it ended."""
    if sys.platform != "linux":
        pytest.skip("some programs fork or limit this process")
    run = python("-m", "tests.toolkit.explain.remedies.run")
    texts = json.loads(run.stdout)
    if isinstance(texts, str):
        pytest.skip(texts)  # there is no simulated accelerator
    return texts


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_change_ends_the_error_that_the_entry_explains(ended, name):
    if name not in ended and name == "no_driver":
        pytest.skip("this build of torch has another message for it: cpu_build")
    halves = ended[name]
    assert halves["fixed"] == ""
    if PROGRAMS[name][0] in SILENT:
        assert "\nAssertionError" in halves["broken"]
    else:
        answer = explain(halves["broken"])
        assert answer.cause is not None, halves["broken"]
        assert answer.cause.slug == name
        is_open = answer.cause.open or knowledge().closer[name]
        assert answer.kind == "sure" or is_open


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_tries_what_its_entry_says(name):
    lines = PROGRAMS[name][1]
    fixed = " ".join(line for line in lines if line.endswith("# fixed"))
    if fixed:  # otherwise, the change is to leave something out
        change = of_cause(knowledge().causes[name]).change
        common = set(re.findall(r"\w+", fixed)) & set(re.findall(r"\w+", change))
        assert common - {"device", "torch"}


def test_every_entry_has_a_program_or_a_reason():
    reasons = tomllib.loads((FOLDER / "reasons.toml").read_text("utf-8"))
    excused = [name for names in reasons.values() for name in names.split()]
    assert sorted([*PROGRAMS, *excused, "cpu_build"]) == sorted(knowledge().causes)
    assert len(PROGRAMS) >= 100
