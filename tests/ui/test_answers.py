"""core.ui.answers: choices that are found again."""

import pytest
from streamlit.testing.v1 import AppTest

from core.store.store import Store
from core.ui import answers


@pytest.fixture
def store(tmp_path, monkeypatch):
    opened = Store(f"sqlite:///{tmp_path / 'app.sqlite'}")
    monkeypatch.setattr(answers, "store", lambda: opened)
    yield opened
    opened.close()


def page() -> None:
    from core.ui import answers

    answers.radio("Which?", ["a", "b"], "which")


@pytest.mark.parametrize(("cookie", "again"), [("me", "b"), ("", None)])
@pytest.mark.usefixtures("store")
def test_a_choice_is_found_again(monkeypatch, cookie, again):
    """In another tab of the browser that its cookie names; without one it is not."""
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: cookie)
    at = AppTest.from_function(page, default_timeout=60).run()
    assert at.radio[0].value is None
    assert at.radio[0].set_value("b").run().radio[0].value == "b"
    assert AppTest.from_function(page, default_timeout=60).run().radio[0].value == again


def switched() -> None:
    import streamlit as st

    from core.ui import answers

    st.markdown(f"{answers.is_on('switch')} before")
    answers.toggle("Show it", "switch")


@pytest.mark.usefixtures("store")
def test_a_switch_is_found_as_it_was_left(monkeypatch):
    """On and off, and known above the place where it is drawn."""
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    for value in (True, False):
        at = AppTest.from_function(switched, default_timeout=60).run()
        assert at.toggle[0].value is not value
        at.toggle[0].set_value(value).run()
        assert at.markdown[0].value == f"{value} before"
        again = AppTest.from_function(switched, default_timeout=60).run()
        assert again.toggle[0].value is value
        assert again.markdown[0].value == f"{value} before"
