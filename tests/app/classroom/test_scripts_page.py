from core.classroom.scripts_page import ScriptProgress, progress
from core.ui.practice import EXERCISES


def test_a_member_has_solved_a_script_or_is_on_the_way():
    answers = {
        "turn_Write it_verdict": {
            "a": {"solved": True, "passed": ["device"]},
            "b": {"solved": False, "passed": ["device", "model"]},
            "c": {"solved": False},  # stored by an earlier version
        },
        "turn_Write it_tries": {"a": 1, "b": 3},
    }
    found = [progress(answers, "Write it", visitor) for visitor in "abcd"]
    assert found == [
        ScriptProgress(True, 1, 1),
        ScriptProgress(False, 3, 2),
        ScriptProgress(False, 0, 0),
        ScriptProgress(False, 0, 0),
    ]
    checks = len(EXERCISES["Write it"].checks)
    texts = [each.text("Write it") for each in found]
    assert texts == ["✓", f"2 of {checks} parts, 3 tries", "–", "–"]
    assert ScriptProgress(False, 2, 0).text("Port it") == "2 tries"


def test_where_no_code_is_run_the_lines_that_a_member_found_count():
    exercise = EXERCISES["Port it"]
    lines = [1, 17, 24, 30, 36]
    answers = {
        "turn_Port it_lines": {
            "a": {"tries": 2, "picked": lines},
            "b": {"tries": 1, "picked": lines[:2]},
            "c": {"tries": 3, "picked": lines},
        },
        "turn_Port it_tries": {"c": 1},  # has run code, on another day
    }
    found = [progress(answers, "Port it", visitor) for visitor in "abc"]
    count = len(exercise.places)
    assert found == [
        ScriptProgress(True, 2, count, by_lines=True),
        ScriptProgress(False, 1, 2, by_lines=True),
        ScriptProgress(True, 1, 0),
    ]
    assert found[1].text("Port it") == f"2 of {count} places, 1 try"


def test_a_pass_stays_whatever_is_tried_later():
    answers = {
        "turn_Port it_solved": {"a": True, "b": True},
        "turn_Port it_verdict": {"a": {"solved": False, "passed": []}},
        "turn_Port it_tries": {"a": 5},
        "turn_Port it_lines": {"b": {"tries": 2, "picked": [1]}},
    }
    found = [progress(answers, "Port it", visitor) for visitor in "ab"]
    assert [each.text("Port it") for each in found] == ["✓", "✓"]
