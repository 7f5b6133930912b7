import pytest

from core.ui.code_editor import lines_in


@pytest.mark.parametrize(
    ("hint", "lines"),
    [
        ("Line 8: the optimizer of line 3 goes on", [8]),
        ("Line 2 can't be read as Python 3.", [2]),
        ("A pipeline of 3 steps", []),
        ("", []),
    ],
)
def test_a_hint_is_about_the_line_that_it_begins_with(hint, lines):
    assert lines_in(hint) == lines
