"""core.ui.mistakes: where an error is shown."""

from core.mistakes.catalogue import Failure
from core.ui import mistakes


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
