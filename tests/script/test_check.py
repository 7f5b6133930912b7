"""A text is checked or refused, and never run."""

import pickle
import sys

import pytest

from core.lessons.mistakes.catalogue import BY_SLUG
from core.script import check as checking
from core.script.check import Checked, check, check_apart
from core.script.syntax import MOST_BYTES, Script
from tests.script.right import RIGHT

UNREADABLE = {  # a text, and what the sentence about it says
    "def f(:": "Line 1",
    "x = 1\n\tif x:\n        y": "Line 2",
    "x = 1\nprint 'loss', x": "Line 2 can't be read as Python 3",
    "if x:\n\ty = 1\n        z = 2": "Line 3",
    "(" * 5_000: "Line 1",
    "-" * 50_000 + "1": "nested too deeply",
    "a" + ".a" * 50_000: "nested too deeply",
    "a\0b": "null bytes",
    '{"cells": [], "nbformat": 4}': "file of a notebook",
    "x = 1\n" * (MOST_BYTES // 6 + 1): "200 KB",
    "é" * MOST_BYTES: "200 KB",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_a_sentence(text):
    checked = check(text)
    assert checked.findings == ()
    assert UNREADABLE[text] in checked.unreadable
    assert checked.unreadable.endswith(".")


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# nothing", "x = '%d' % 3\n", "x = ('%d'\n     % 3)", "\ufeffx = 1"],
)
def test_what_has_no_mistake_finds_none(text):
    assert check(text) == Checked()


def test_a_notebook_is_read_with_its_magic():
    cells = "!pip install torch\n%matplotlib inline\nfiles = !ls\nif x:\n    !ls\n"
    (found,) = check(f"{cells}y = torch.load(f)").findings
    assert found.line == 6
    assert Script(cells).is_notebook


def test_nothing_is_run_or_imported():
    check("import antigravity\nimport sys\nsys.exit(1)\nraise SystemExit\n")
    assert "antigravity" not in sys.modules


def test_a_script_that_recurses_without_end_is_checked():
    text = "def f():\n    g()\ndef g():\n    f()\nfor x in y:\n    f()"
    assert check(text).findings == ()


def test_each_finding_leads_to_a_mistake_that_there_is():
    text = RIGHT.replace(".to(device)", ".cuda()").replace(", map_location=device", "")
    text = text.replace("            optimizer.zero_grad()\n", "")
    checked = check(text)
    slugs = [finding.slug for finding in checked.findings]
    assert slugs == ["cuda_hard_coded", "cuda_checkpoint", "no_zero_grad"]
    assert set(slugs) <= set(BY_SLUG)
    assert pickle.loads(pickle.dumps(checked)) == checked


def test_it_is_checked_in_a_process_of_its_own(monkeypatch):
    asked = {}

    def call(address, *arguments, **limits):
        asked.update(limits, address=address)
        return check(*arguments)

    monkeypatch.setattr(checking.sandbox, "call", call)
    assert check_apart("x = 1") == Checked()
    assert asked["hostile"]
    assert asked["seconds"] < 10
    assert asked["address"] == "core.script.check:check"
