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
