"""core.ui.metrics: what is counted while people use the app."""

from dataclasses import replace

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import NewSession

from core.jobs.job import Job
from core.ui import metrics
from core.ui.metrics import REGISTRY, Looks
from tests import event_loop

ASK = BackMsg(rerun_script=ClientState()).SerializeToString()
BEGIN = ForwardMsg(new_session=NewSession(name="page"))
PAGE, PART, EARLY = (
    ForwardMsg(script_finished=status)
    for status in (
        ForwardMsg.FINISHED_SUCCESSFULLY,
        ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
        ForwardMsg.FINISHED_EARLY_FOR_RERUN,
    )
)


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Its one entry is what the time is."""
    now = [1000.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    return now


def read(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"to_device_{name}", labels) or 0.0


def tab(clock: list[float], *said: bytes | ForwardMsg) -> None:
    """A connection with these messages, a second apart; bytes come from the browser."""
    inbox = [each for each in said if isinstance(each, bytes)]

    async def streamlit(_scope, receive, send) -> None:
        for each in said:
            clock[0] += 1
            if isinstance(each, bytes):
                assert (await receive())["bytes"] == each
            else:
                data = each.SerializeToString()
                await send({"type": "websocket.send", "bytes": data})
            assert read("sessions") == 1

    async def receive() -> dict:
        return {"type": "websocket.receive", "bytes": inbox.pop(0)}

    sent = []

    async def send(message: dict) -> None:
        sent.append(message["bytes"])

    event_loop.run(Looks(streamlit)({"type": "websocket"}, receive, send))
    assert sent == [e.SerializeToString() for e in said if not isinstance(e, bytes)]


@pytest.mark.parametrize(
    ("said", "of", "count", "seconds"),
    [
        ((ASK, BEGIN, PAGE), "page", 1, 2),
        ((ASK, BEGIN, PART), "part", 1, 2),
        ((ASK, ASK, BEGIN, PART), "part", 2, 3 + 2),  # one run answers both
        ((ASK, BEGIN, ASK, PART, BEGIN, PART), "part", 2, 3 + 3),  # each its own
        ((ASK, BEGIN, ASK, EARLY, BEGIN, PAGE), "page", 2, 5 + 3),  # the second both
        ((b"nonsense", BEGIN, PAGE), "page", 0, 0),  # nobody has asked
        ((ASK, BEGIN), "page", 0, 0),  # the tab was closed
    ],
)
def test_a_look_lasts_from_the_question_to_the_end_of_its_answer(
    clock, said, of, count, seconds
):
    """And nothing on the way is changed."""
    before = read("look_seconds_count", of=of), read("look_seconds_sum", of=of)
    tab(clock, *said)
    assert read("look_seconds_count", of=of) - before[0] == count
    assert read("look_seconds_sum", of=of) - before[1] == seconds
    assert read("sessions") == 0


def test_a_job_is_counted_by_what_it_does_and_how_it_ends():
    """A job that was cancelled while it waited has waited, and not run."""
    job = Job("a", "a.kind:of", (), "train", submitted=10.0, stopped=25.0)
    metrics.ended(replace(job, status="cancelled"))
    metrics.ended(replace(job, status="finished", started=13.0))
    kind = "a.kind:of"
    assert read("job_wait_seconds_sum", kind=kind) == 15 + 3
    assert read("job_run_seconds_sum", kind=kind, status="finished") == 12
    assert read("job_run_seconds_count", kind=kind, status="cancelled") == 1
