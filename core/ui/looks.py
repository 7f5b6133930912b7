"""How soon the browser asks for a part of a page again.

`st.fragment(run_every=…)` keeps an interval until the whole page is drawn anew, which
takes the server some 30 ms. The browser takes another one at any time: a fragment may
tell at each look when the next one is due.
"""

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

from core.jobs.job import Job
from core.ui.server import visitor

# From one look at a job to the next. A look at a run takes the server some 10 ms, so
# that one's own can be seen to learn while a class looks on, or waits for its turn.
# Other panels build an Altair chart each time, which takes up to 100 ms.
RUN_SECONDS = 0.2
POLL_SECONDS = 1.0
PATIENT_SECONDS = 3.0


def fragment() -> str:
    """The id of the innermost fragment that is being drawn; empty outside of all."""
    return ThreadState.get().fragment_id or ""


def every(seconds: float | None, of: str = "") -> None:
    """Have a fragment looked at so often from now on, or no more; this one, if unnamed.

    An interval that the browser keeps already goes on undisturbed.
    """
    of = of or fragment()
    message = ForwardMsg()
    if seconds is None:
        message.stop_auto_rerun.fragment_ids.append(of)
    else:
        message.auto_rerun.fragment_id = of
        message.auto_rerun.interval = seconds
    if context := get_script_run_ctx():
        context.enqueue(message)


def interval(job: Job, going_on: float = POLL_SECONDS) -> float | None:
    """From one look of this visitor at a job to the next; None where it has ended.

    It is `going_on` once their own job has a worker. Others look on, or wait; who is
    next, one person at most, looks a bit more often, to see the job begin.
    """
    if job.ended:
        return None
    if job.owner not in ("", visitor()) or job.place > 1:
        return PATIENT_SECONDS
    return POLL_SECONDS if job.place else going_on
