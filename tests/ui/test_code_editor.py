import pytest
from streamlit.testing.v1 import AppTest

from core.ui.code_editor import lines_in
from tests.pages.walk import code_in, texts, write_code


def page() -> None:
    import streamlit as st

    from core.ui import code_editor

    with st.form("form"):
        code_editor.draw("The code", "code", "a = 1", marked=[2])
        st.form_submit_button("Send")
    st.markdown(code_editor.text("code"))


def test_a_field_has_its_value_until_somebody_writes_and_then_that():
    at = AppTest.from_function(page, default_timeout=60).run()
    assert texts(at.markdown) == code_in(at)["value"] == "a = 1"
    write_code(at, "code", "b = 2\nc = 3")
    at.button[0].click().run().run()
    assert texts(at.markdown) == code_in(at)["value"] == "b = 2\nc = 3"
    assert code_in(at)["marked"] == [2]


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
