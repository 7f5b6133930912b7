from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from core.ui import frame, runs
from tests.app.jobs.follow import LONG, wait
from tests.app.pages.walk import open_page, open_tab


def links(at) -> list[str]:
    return [link.proto.label for link in at.get("page_link")]


def test_a_running_job_is_shown_on_other_pages(engine):
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

    from core.ui import frame

    names = "One", "Two", "Three"
    frame.sections({n: lambda n=n: st.markdown(n) for n in names}, always=("Three",))


def test_only_the_open_tab_is_drawn():
    at = AppTest.from_function(page, default_timeout=60).run()
    assert [text.value for text in at.markdown] == ["One", "Three"]
    at.query_params["tab"] = "Two"
    at.run()
    assert [text.value for text in at.markdown] == ["Two", "Three"]


def page_with_more() -> None:
    import streamlit as st

    from core.ui import frame

    names = "One", "Two", "Three"
    functions = {n: lambda n=n: st.markdown(n) for n in names}
    frame.sections(functions, more=("Two", "Three"))


def test_what_is_not_of_the_course_is_found_by_its_name_alone():
    at = AppTest.from_function(page_with_more, default_timeout=60).run()
    assert [tab.label for tab in at.tabs] == ["One", frame.MORE]
    assert [text.value for text in at.markdown] == ["One"]
    at = AppTest.from_function(page_with_more, default_timeout=60)
    at.query_params["tab"] = "Three"
    assert [text.value for text in at.run().markdown] == ["Three"]
    open_tab(at, "Two", "more")
    assert [text.value for text in at.markdown] == ["Two"]
    open_tab(at, "One")
    assert [text.value for text in at.markdown] == ["One"]
    open_tab(at, "Three")
    assert [text.value for text in at.markdown] == ["Three"]


def page_of_a_machine() -> None:
    import streamlit as st

    from core.ui import frame

    frame.machine()
    st.markdown("drawn")


@pytest.mark.parametrize("problem", ["", "They can't start here."])
def test_a_page_says_why_there_are_no_workers(monkeypatch, problem):
    """Or else, that they are starting."""
    engine = SimpleNamespace(machine=lambda: None, problem=problem)
    monkeypatch.setattr(frame, "engine", lambda: engine)
    monkeypatch.setattr(frame, "engine_problem", lambda: engine.problem)
    at = AppTest.from_function(page_of_a_machine, default_timeout=60).run()
    assert [error.value for error in at.error] == ([problem] if problem else [])
    shown = [text.value for text in at.markdown]
    assert shown == ([] if problem else [frame.LOADING])
