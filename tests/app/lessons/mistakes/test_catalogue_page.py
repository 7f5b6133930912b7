from core.lessons.mistakes.catalogue import Failure
from core.lessons.mistakes.catalogue_page import arrowed


def test_an_arrow_points_at_the_statement_that_raised():
    code = "if x:\n    a = f(\n        1,\n    )\nreturn a"

    def pointed_at(line: int) -> list[int]:
        failure = Failure("KeyError", "", line, "", False)
        lines = arrowed(code, failure).splitlines()
        assert [line[2:] for line in lines] == code.splitlines()
        return [n for n, line in enumerate(lines, 1) if line.startswith("→")]

    assert pointed_at(2) == [2, 3, 4]
    assert pointed_at(1) == [1]
    assert pointed_at(5) == [5]
    assert arrowed(code, None) == code
