"""core.ui.your_turn: what is written is judged, and found again."""

import pytest
from streamlit.testing.v1 import AppTest

from core.store.store import Store
from core.ui import answers, your_turn
from core.ui.your_turn import EXERCISES
from tests.pages.walk import code_in, texts, write_code


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    opened = Store(f"sqlite:///{tmp_path / 'app.sqlite'}")
    monkeypatch.setattr(answers, "store", lambda: opened)
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    yield opened
    opened.close()


def page(title: str) -> None:
    from core.ui import your_turn

    your_turn.draw(title)


def opened(title: str) -> AppTest:
    return AppTest.from_function(page, default_timeout=60, args=(title,)).run()


def write(at: AppTest, text: str) -> AppTest:
    """Write that, and have it checked."""
    (key,) = (each.key for each in at.get("bidi_component"))
    write_code(at, key, text)
    return at.button[0].click().run()


@pytest.mark.parametrize("title", EXERCISES)
def test_what_is_written_is_judged(title):
    """Wrong as it stands, then no Python, then right; and so in another tab."""
    exercise = EXERCISES[title]
    at = opened(title)
    assert code_in(at)["value"] == exercise.code
    assert not at.info
    assert write(at, exercise.code).info
    assert "can't be read as Python" in texts(write(at, "\ndef f(:").info)
    assert code_in(at)["marked"] == [2]
    assert exercise.right in texts(write(at, exercise.solution).success)
    assert not at.exception
    again = opened(title)
    assert code_in(again)["value"] == exercise.solution
    assert again.success


def test_a_page_without_an_exercise_has_no_place_for_one():
    """As the one that compares runs."""
    assert not opened("Runs").subheader


def test_a_file_that_cannot_be_read_is_a_sentence(monkeypatch):
    """The page is there all the same."""
    monkeypatch.setattr(your_turn, "BROKEN", "exercises.toml can't be read: why")
    assert "can't be read" in texts(opened("Model").error)
