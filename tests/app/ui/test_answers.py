import pytest
from streamlit.testing.v1 import AppTest

from core.store.store import Store
from core.ui import answers


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    opened = Store(f"sqlite:///{tmp_path / 'app.sqlite'}")
    monkeypatch.setattr(answers, "store", lambda: opened)
    yield opened
    opened.close()


def page() -> None:
    import streamlit as st

    from core.ui import answers

    st.markdown(f"{answers.is_on('switch')} before")
    answers.radio("Which?", ["a", "b"], "which")
    answers.toggle("Show it", "switch")


@pytest.mark.parametrize("sent", ["c", "c" * 900_000, "<b>"])
def test_what_no_option_offers_is_not_kept(sent, store, monkeypatch):
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    at = AppTest.from_function(page, default_timeout=60).run()
    at.radio[0].set_value("b").run()
    at.radio[0].options.append(sent)  # as a program may
    at.radio[0].set_value(sent).run()
    assert store.answers.of("me") == {"which": "b"}


def test_an_answer_whose_callback_was_ended_is_kept(store, monkeypatch):
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: "me")
    monkeypatch.setattr(answers, "keep_chosen", lambda *_: None)
    at = AppTest.from_function(page, default_timeout=60).run()
    at.radio[0].set_value("b").run()
    assert store.answers.of("me") == {"which": "b"}


@pytest.mark.parametrize("cookie", ["me", ""])
def test_with_a_cookie_answers_are_found_again_in_another_tab(monkeypatch, cookie):
    monkeypatch.setattr(answers, "visitor_of_cookie", lambda: cookie)
    at = AppTest.from_function(page, default_timeout=60).run()
    assert (at.radio[0].value, at.toggle[0].value) == (None, False)
    at.radio[0].set_value("b")
    at.toggle[0].set_value(True).run()
    assert at.radio[0].value == "b"
    assert at.markdown[0].value == "True before"
    again = AppTest.from_function(page, default_timeout=60).run()
    assert again.radio[0].value == ("b" if cookie else None)
    assert again.toggle[0].value is bool(cookie)
    assert again.markdown[0].value == f"{bool(cookie)} before"
    again.toggle[0].set_value(False).run()
    last = AppTest.from_function(page, default_timeout=60).run()
    assert last.toggle[0].value is False
