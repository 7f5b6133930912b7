"""core.ui.sections: the tabs of a page."""

from streamlit.testing.v1 import AppTest

from tests.pages.walk import open_tab


def page() -> None:
    """Three tabs, one of them always drawn."""
    import streamlit as st

    from core.ui import controls
    from core.ui.sections import sections

    def number() -> None:
        controls.choice("Letter", "letter", ("a", "b"))
        controls.number("Number", "number", 1, 1)

    sections(
        {
            "One": number,
            "Two": lambda: st.markdown("two"),
            "Three": lambda: st.markdown("three"),
        },
        always=("Three",),
    )


def test_only_the_open_tab_is_drawn():
    """And what must not be forgotten; an address opens any."""
    at = AppTest.from_function(page, default_timeout=60).run()
    assert [each.value for each in at.markdown] == ["three"]
    at.query_params["tab"] = "Two"
    at.run()
    assert [each.value for each in at.markdown] == ["two", "three"]
    assert not at.number_input


def test_a_control_still_says_what_was_chosen_when_its_tab_opens_again():
    """Also when it is the same page after another one."""
    at = AppTest.from_function(page, default_timeout=60).run()
    at.number_input(key="number").set_value(7)
    at.selectbox(key="letter").set_value("b").run()
    for name in ("Two", "One", "Two", "One"):
        open_tab(at, name)
    assert at.number_input(key="number").value == 7
    assert at.selectbox(key="letter").value == "b"
    at.number_input(key="number").set_value(8).run()
    assert at.number_input(key="number").value == 8
