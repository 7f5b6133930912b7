"""What all tests of the server need."""

from collections.abc import Iterator

import pytest
import uvicorn
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from starlette.formparsers import MultiPartParser
from streamlit import net_util
from streamlit.runtime import app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.runtime import Runtime
from streamlit.runtime.scriptrunner_utils import script_requests
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_websocket import (
    StarletteSessionClient,
)
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from core.serving.streamlit_internals import give_back_turn


@pytest.fixture(autouse=True)
def unpatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take the patches, and a turn, back after each test."""
    for kind, names in (
        (script_requests, ("_coalesce_widget_states",)),
        (net_util, ("get_external_ip",)),
        (starlette_websocket, ("_is_origin_allowed",)),
        (MultiPartParser, ("on_headers_finished",)),
        (app_session, ("_populate_theme_msg",)),
        (StarletteSessionClient, ("write_forward_msg",)),
        (
            AppSession,
            (
                "handle_backmsg",
                "register_file_watchers",
                "request_rerun",
                "_create_scriptrunner",
                "_create_new_session_message",
                "_handle_file_urls_request",
                "_handle_clear_cache_request",
                "_handle_git_information_request",
                "_handle_backend_operation_request",
                "_handle_scriptrunner_event_on_event_loop",
            ),
        ),
        (ForwardMsgQueue, ("clear",)),
        (Runtime, ("_instance", "_send_message", "connect_session")),
        (uvicorn.Server, ("shutdown",)),
        (H11Protocol, ("__init__", "connection_made", "send_400_response")),
        (ChunkedReader, ("__call__",)),
        (ReceiveBuffer, ("maybe_extract_lines",)),
        (
            WebSocketsSansIOProtocol,
            (
                "connection_made",
                "connection_lost",
                "data_received",
                "handle_connect",
                "handle_cont",
                "handle_events",
                "handle_ping",
                "resume_writing",
                "send",
                "send_receive_event_to_app",
            ),
        ),
    ):
        for name in names:
            monkeypatch.setattr(kind, name, getattr(kind, name))
    yield
    give_back_turn()
