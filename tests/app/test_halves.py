"""A function that is written once has two halves, which are shown as they run."""

import inspect
import sys
import traceback
from types import ModuleType

import pytest

from core.halves import HALVES, define, lines_of

BOTH = """
def pick(numbers):
    chosen = []
    for number in numbers:
        if number > 1:  # fixed
            chosen.append(number)
    return len(chosen) / 0  # broken
    return chosen  # fixed
""".strip()


@pytest.fixture
def module(tmp_path) -> ModuleType:
    file = tmp_path / "picks.py"
    file.write_text(BOTH)
    module = ModuleType("picks")
    module.__file__ = str(file)
    define(vars(module))
    return module


def test_a_half_has_its_own_lines_and_those_of_both():
    lines = lines_of(BOTH, "broken")
    assert [line for line, own in lines if own] == ["    return len(chosen) / 0"]
    assert [line for line, _ in lines][:1] == ["def broken_pick(numbers):"]
    assert not any("#" in line for half in HALVES for line, _ in lines_of(BOTH, half))


def test_a_block_whose_first_line_is_the_other_halfs_moves_out():
    assert ("        chosen.append(number)", False) in lines_of(BOTH, "broken")
    assert ("            chosen.append(number)", False) in lines_of(BOTH, "fixed")


def test_the_halves_run_and_a_traceback_quotes_them(module):
    assert module.fixed_pick([1, 2, 3]) == [2, 3]
    with pytest.raises(ZeroDivisionError) as caught:
        module.broken_pick([1])
    assert "return len(chosen) / 0\n" in "".join(traceback.format_tb(caught.tb))
    assert caught.tb.tb_next.tb_lineno == len(lines_of(BOTH, "broken")[1:])
    assert inspect.isfunction(module.broken_pick)
    assert module.__name__ not in sys.modules
