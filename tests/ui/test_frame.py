from streamlit.testing.v1 import AppTest

from core.ui import runs
from tests.jobs.follow import LONG, wait
from tests.pages.walk import open_page, open_tab


def links(at) -> list[str]:
    return [link.proto.label for link in at.get("page_link")]


def test_what_goes_on_is_told_on_another_page(engine):
    at = open_page("pages/10_Runs.py")
    run_id = engine.submit(runs.RUN, LONG, owner=at.session_state["visitor"])
    wait(lambda: engine.job(run_id).status == "running")
    at.run()
    (link,) = (label for label in links(at) if label.startswith("Train: "))
    assert link.endswith("%")
    engine.cancel(run_id)
    wait(lambda: engine.job(run_id).ended)
    assert not any(label.startswith("Train: ") for label in links(at.run()))


def page() -> None:
    import streamlit as st

    from core.ui import controls, frame

    def number() -> None:
        controls.choice("Letter", "letter", ("a", "b"))
        controls.number("Number", "number", 1, 1)

    frame.sections(
        {
            "One": number,
            "Two": lambda: st.markdown("two"),
            "Three": lambda: st.markdown("three"),
        },
        always=("Three",),
    )


def test_only_the_open_tab_is_drawn():
    at = AppTest.from_function(page, default_timeout=60).run()
    assert [text.value for text in at.markdown] == ["three"]
    at.query_params["tab"] = "Two"
    at.run()
    assert [text.value for text in at.markdown] == ["two", "three"]
    assert not at.number_input


def test_a_control_still_says_what_was_chosen_when_its_tab_opens_again():
    at = AppTest.from_function(page, default_timeout=60).run()
    at.number_input(key="number").set_value(7)
    at.selectbox(key="letter").set_value("b").run()
    for name in ("Two", "One", "Two", "One"):
        open_tab(at, name)
    assert at.number_input(key="number").value == 7
    assert at.selectbox(key="letter").value == "b"
    at.number_input(key="number").set_value(8).run()
    assert at.number_input(key="number").value == 8
