"""How a script's messages get to the browser: patches of Streamlit's private parts.

core/serving/streamlit_internals.py applies them, and says what each patch needs.
"""

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.session_manager import ActiveSessionInfo


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
    send_what_waits,
    send_on_newest_connection,
)
