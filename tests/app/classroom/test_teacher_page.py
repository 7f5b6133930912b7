from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.classroom import teacher_page


@pytest.mark.parametrize("is_full", [False, True])
def test_a_teacher_reads_that_classes_hold_the_room(monkeypatch, is_full):
    classroom = SimpleNamespace(id="c", name="Monday")
    store = SimpleNamespace(
        is_full_of_classes=is_full, classes=SimpleNamespace(all=lambda: [classroom])
    )
    monkeypatch.setattr(teacher_page, "store", lambda: store)
    monkeypatch.setattr(teacher_page, "room", lambda: SimpleNamespace(open=classroom))
    for part in ("_new", "_state", "_buttons"):
        monkeypatch.setattr(teacher_page, part, lambda *_: None)
    script = "from core.classroom import teacher_page\nteacher_page.choose()"
    at = AppTest.from_string(script, default_timeout=60).run()
    assert not at.exception
    said = [warning.value for warning in at.warning]
    assert said == ([teacher_page.words("teacher.full")] if is_full else [])
