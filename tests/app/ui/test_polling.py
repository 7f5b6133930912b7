from types import SimpleNamespace

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.testing.v1 import AppTest

from core.jobs.job import Job
from core.ui import frame
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
        ("queued", 200, "me", 20.0),
        ("running", 0, "another", 3.0),
        ("queued", 200, "another", 20.0),
        ("finished", 0, "me", None),
    ],
)
def test_a_job_is_polled_the_more_often_the_sooner_it_matters(
    monkeypatch, status, place, owner, seconds
):
    monkeypatch.setattr(looks, "visitor", lambda: "me")
    job = Job("a", "path", (), "train", owner, status, place)
    assert looks.interval(job, looks.RUN_SECONDS) == seconds


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_many_tabs_together_do_not_ask_more_often_than_some(monkeypatch, seconds):
    for tabs in (1, 10, 100, 1_000):
        monkeypatch.setattr(looks, "count_of_tabs", lambda tabs=tabs: tabs)
        assert looks.shared(seconds) >= seconds
        assert tabs / looks.shared(seconds) <= max(looks.ALL_A_SECOND, 1 / seconds)
    monkeypatch.setattr(looks, "count_of_tabs", lambda: 20)
    assert looks.shared(seconds) == seconds, "a few tabs change nothing"


def sidebar() -> None:
    from core.ui import frame

    frame._live()


@pytest.mark.parametrize(
    ("places", "in_class", "seconds"),
    [
        ([], False, frame.HOUR),
        ([], True, 5.0),
        ([2], False, 5.0),
        ([200], False, 20.0),
        ([200], True, 5.0),
        ([200, 0], False, 5.0),
        ([None], False, frame.HOUR),
        (["unknown"], False, 5.0),
    ],
)
def test_the_sidebar_looks_only_as_often_as_something_changes(
    monkeypatch, places, in_class, seconds
):
    """A job's place; 0 while it runs, None after its end."""
    jobs: dict[str, Job] = {}
    for number, place in enumerate(places):
        status = {0: "running", None: "finished"}.get(place, "queued")
        job = Job(str(number), "no:page", (), "train", "me", status, place or 0)
        jobs[job.id] = job
    known = {} if places == ["unknown"] else jobs
    engine = SimpleNamespace(going_on=lambda _: [*jobs.values()], job=known.get)
    monkeypatch.setattr(frame, "engine", lambda: engine)
    monkeypatch.setattr(frame.spoilers, "is_student", lambda: in_class)
    monkeypatch.setattr(frame.spoilers, "on_wall", tuple)
    for module in (frame, looks):
        monkeypatch.setattr(module, "visitor", lambda: "me")
    intervals: list[float] = []
    monkeypatch.setattr(looks, "every", intervals.append)
    assert not AppTest.from_function(sidebar).run().exception
    assert intervals == [seconds]
