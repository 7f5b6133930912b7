"""How soon the browser asks for a part of a page again.

`st.fragment(run_every=…)` keeps an interval until the whole page is drawn anew, which
takes the server some 30 ms. The browser takes another one at any time: a fragment may
tell at each look when the next one is due.
"""

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState


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
