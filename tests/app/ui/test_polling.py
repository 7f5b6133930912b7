import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from core.jobs.job import Job
from core.ui import polling as looks


def page() -> None:
    import streamlit as st

    from core.ui import polling as looks

    st.text(f"outside: {looks.fragment()!r}")

    @st.fragment
    def outer() -> None:
        st.text(f"outer: {looks.fragment()}")
        inner(looks.fragment())
        looks.every(3.0)

    @st.fragment
    def inner(whole: str) -> None:
        st.text(f"inner: {looks.fragment()}")
        looks.every(None)
        looks.every(0.5, whole)

    outer()


def test_a_fragment_sets_its_own_interval_and_that_of_another(monkeypatch):
    sent: list[ForwardMsg] = []
    enqueue = ScriptRunContext.enqueue

    def gather(context: ScriptRunContext, message: ForwardMsg) -> None:
        sent.append(message)
        enqueue(context, message)

    monkeypatch.setattr(ScriptRunContext, "enqueue", gather)
    at = AppTest.from_function(page).run()
    assert not at.exception
    ids_by_name = dict(text.value.split(": ") for text in at.text)
    assert ids_by_name["outside"] == "''"
    assert ids_by_name["outer"] != ids_by_name["inner"]
    intervals = [
        (message.auto_rerun.fragment_id, message.auto_rerun.interval)
        for message in sent
        if message.HasField("auto_rerun")
    ]
    assert intervals == [(ids_by_name["outer"], 0.5), (ids_by_name["outer"], 3.0)]
    stopped = [list(m.stop_auto_rerun.fragment_ids) for m in sent]
    assert [ids for ids in stopped if ids] == [[ids_by_name["inner"]]]


@pytest.mark.parametrize(
    ("status", "place", "owner", "seconds"),
    [
        ("running", 0, "me", 0.2),
        ("starting", 0, "me", 0.2),
        ("queued", 1, "me", 1.0),
        ("queued", 2, "me", 3.0),
        ("running", 0, "another", 3.0),
        ("finished", 0, "me", None),
    ],
)
def test_ones_own_job_is_looked_at_more_often(
    monkeypatch, status, place, owner, seconds
):
    monkeypatch.setattr(looks, "visitor", lambda: "me")
    job = Job("a", "path", (), "train", owner, status, place)
    assert looks.interval(job, looks.RUN_SECONDS) == seconds
