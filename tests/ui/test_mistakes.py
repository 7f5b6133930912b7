"""core.ui.mistakes: whose turn it is, and where an error is shown."""

import pytest

from core.errors import ExplainedError
from core.mistakes.catalogue import Failure
from core.ui import mistakes


def test_one_mistake_a_person_and_few_at_once():
    """A person with one running gets no second; a third person waits for a turn."""
    turns = mistakes.Turns(at_once=2)
    with turns.take("ana"), turns.take("bo"):
        with pytest.raises(ExplainedError, match="running already"), turns.take("ana"):
            pytest.fail("she has one")
        with (
            pytest.raises(ExplainedError, match="no turn"),
            turns.take("eve", seconds=0.05),
        ):
            pytest.fail("two are running")
    with turns.take("eve", seconds=0.05), turns.take("ana", seconds=0.05):
        pass


def test_nobody_is_remembered_after_their_turn():
    """A server that many people visit knows those alone who are at it."""
    turns = mistakes.Turns()
    with turns.take("ana"):
        assert list(turns._people) == ["ana"]
    assert list(turns._people) == []


def test_a_turn_ends_with_an_error():
    """Whoever's mistake could not be run may try again, and blocks nobody."""
    turns = mistakes.Turns(at_once=1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.take("ana", seconds=0.05):
            raise ZeroDivisionError


def test_a_remark_stands_under_the_statement_that_raised():
    """Also where the statement has several lines, or stands in a block."""
    code = "if x:\n    a = f(\n        1,\n    )\nreturn a"

    def remark(line: int) -> list[str]:
        failure = Failure("KeyError", "", line, "", False)
        return mistakes.marked(code, failure).splitlines()

    assert remark(2)[4:6] == ["    # ^^^^", "    # KeyError"]
    assert remark(1)[1:3] == ["# ^^^", "# KeyError"]
    assert remark(5)[5:] == ["# ^^^^^^", "# KeyError"]
    assert mistakes.marked(code, None) == code
