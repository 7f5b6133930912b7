"""How a script's messages get to the browser: patches of Streamlit's private parts.

core/serving/streamlit_internals.py applies them, and says what each patch needs.
"""

import threading
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.session_manager import ActiveSessionInfo

GATHERED = "_gathered_events"  # a session's attribute; see hand_over_together
GATHER_SECONDS = 0.004  # Streamlit itself waits 5 ms after it has sent something


@dataclass
class Gathered:
    """Events of a session's scripts that the event loop has not handled yet."""

    events: deque[tuple[ScriptRunner | None, ScriptRunnerEvent, dict[str, Any]]] = (
        field(default_factory=deque)
    )
    is_due: bool = False  # whether the event loop has been told
    lock: threading.Lock = field(default_factory=threading.Lock)


def hand_over_together() -> None:
    """Hand all that a script sends within 4 ms to the event loop in one call.

    Streamlit wakes the event loop for each element, and makes it a call that compares
    the event with all others. A page has 130 elements. In six tests, a page of Train
    took 21 ms of a processor instead of 23: the event loop 5 ms instead of 7.
    """
    handle = AppSession._handle_scriptrunner_event_on_event_loop
    message = ScriptRunnerEvent.ENQUEUE_FORWARD_MSG

    def gather(
        session: AppSession,
        sender: ScriptRunner | None,
        event: ScriptRunnerEvent,
        **more: Any,
    ) -> None:
        gathered = vars(session).setdefault(GATHERED, Gathered())
        with gathered.lock:
            gathered.events.append((sender, event, more))
            was_due, gathered.is_due = gathered.is_due, True
        if event is not message:  # a run begins or ends: nobody waits 4 ms for that
            session._call_soon_on_event_loop(partial(hand_over, session))
        elif not was_due:
            later = partial(session._event_loop.call_later, GATHER_SECONDS)
            session._call_soon_on_event_loop(partial(later, hand_over, session))  # type: ignore[arg-type]

    def hand_over(session: AppSession) -> None:
        gathered = vars(session)[GATHERED]
        with gathered.lock:
            gathered.is_due = False
        try:
            while gathered.events:
                sender, event, more = gathered.events.popleft()
                if event is not message:
                    handle(session, sender, event, **more)
                elif sender is session._scriptrunner:
                    session._enqueue_forward_msg(more["forward_msg"])
        finally:
            if gathered.events:  # one of them failed
                session._call_soon_on_event_loop(partial(hand_over, session))

    AppSession._on_scriptrunner_event = gather  # type: ignore[assignment]


def send_what_waits() -> None:
    """Send a fragment's messages even if its next run starts before they are sent.

    Streamlit drops these messages when the fragment's next run starts
    (streamlit/streamlit#9381). But it keeps references to elements that the browser has
    cached, which name no fragment. The browser then puts such an element into a
    container that was never sent, fails, and shows a white page.
    """
    clear = ForwardMsgQueue.clear

    def clear_for_page(
        queue: ForwardMsgQueue,
        retain_lifecycle_msgs: bool = False,
        fragment_ids_this_run: list[str] | None = None,
    ) -> None:
        if fragment_ids_this_run:
            queue._delta_index_map = {}  # so that new messages replace no waiting ones
        else:
            clear(queue, retain_lifecycle_msgs)

    ForwardMsgQueue.clear = clear_for_page  # type: ignore[assignment]


def send_on_newest_connection() -> None:
    """Send to the connection that a session has now.

    Streamlit goes through an older list of connections. Without this patch, messages to
    a session that has just reconnected are lost, and the session's page waits forever
    (streamlit/streamlit#15909 keeps the session, not its messages).
    """
    send_message = Runtime._send_message

    def to_newest(self: Runtime, old: ActiveSessionInfo, message: ForwardMsg) -> None:
        newest = self._session_mgr.get_active_session_info(old.session.id)
        send_message(self, newest or old, message)

    Runtime._send_message = to_newest  # type: ignore[assignment]


PATCHES = (
    hand_over_together,
    send_what_waits,
    send_on_newest_connection,
)
