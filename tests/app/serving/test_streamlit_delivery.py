"""Each patch has a test that fails once Streamlit doesn't need the patch any more."""

import asyncio
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import ScriptRunnerEvent

from core.serving import streamlit_delivery
from tests.app import event_loop
from tests.app.serving.connections import SCRIPT, mends, new_runtime

MESSAGE = ScriptRunnerEvent.ENQUEUE_FORWARD_MSG


@pytest.fixture
def calls(monkeypatch) -> list[object]:
    """The calls that sessions make of the event loop."""
    made: list[object] = []
    call = AppSession._call_soon_on_event_loop

    def call_soon(session: AppSession, callback) -> None:
        made.append(callback)
        call(session, callback)

    monkeypatch.setattr(AppSession, "_call_soon_on_event_loop", call_soon)
    return made


def new_session(script: object) -> AppSession:
    """A session with a script that runs."""
    file = SimpleNamespace(main_script_path=SCRIPT, is_hello=False)
    visit = AppSession(file, Mock(), Mock(), lambda: None, {})
    visit._scriptrunner = script
    return visit


async def handed_over(visit: AppSession, count: int) -> list[str]:
    async with asyncio.timeout(30):
        while len(visit._browser_queue) < count:
            await asyncio.sleep(0.001)
    return [message.hash for message in visit._browser_queue.flush()]


def test_what_a_script_sends_at_once_is_handed_over_at_once_and_in_order(calls):
    names = [str(number) for number in range(100)]

    async def is_one_by_one() -> bool:
        calls.clear()
        script = Mock()
        visit = new_session(script)

        def send() -> None:
            for name in names:
                message = ForwardMsg(hash=name)
                visit._on_scriptrunner_event(script, MESSAGE, forward_msg=message)

        await asyncio.to_thread(send)
        assert await handed_over(visit, len(names)) == names
        return len(calls) == len(names)

    mends(streamlit_delivery.hand_over_together, is_one_by_one)


def test_messages_of_several_scripts_get_there_and_those_of_an_old_one_do_not():
    async def run() -> list[str]:
        script, old = Mock(), Mock()
        visit = new_session(script)

        def send(sender: object, prefix: str) -> None:
            for number in range(200):
                message = ForwardMsg(hash=f"{prefix}{number}")
                visit._on_scriptrunner_event(sender, MESSAGE, forward_msg=message)

        threads = [
            threading.Thread(target=send, args=args)
            for args in ((script, "a"), (script, "b"), (old, "old"))
        ]
        for thread in threads:
            thread.start()
        got = await handed_over(visit, 400)
        for thread in threads:
            thread.join()
        return got

    streamlit_delivery.hand_over_together()
    got = event_loop.run(run())
    for prefix in "ab":
        sent = [f"{prefix}{number}" for number in range(200)]
        assert [name for name in got if name.startswith(prefix)] == sent
    assert len(got) == 400


def test_an_event_that_fails_does_not_hold_up_those_behind_it():
    async def run() -> list[str]:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        script = Mock()
        visit = new_session(script)
        started = ScriptRunnerEvent.SCRIPT_STARTED  # it names no page, so it fails
        visit._on_scriptrunner_event(script, started)
        message = ForwardMsg(hash="behind")
        visit._on_scriptrunner_event(script, MESSAGE, forward_msg=message)
        return (await handed_over(visit, 1))[-1:]

    streamlit_delivery.hand_over_together()
    assert event_loop.run(run()) == ["behind"]


def test_a_container_is_sent_before_what_it_holds():
    container, reference = ForwardMsg(), ForwardMsg()
    container.metadata.delta_path[:] = [0, 0]
    container.delta.fragment_id = "wall"
    container.delta.add_block.SetInParent()
    reference.metadata.delta_path[:] = [0, 0, 0]
    reference.ref_hash = "a picture that the browser has"

    async def is_lost() -> bool:
        queue = ForwardMsgQueue()
        for message in (container, reference):
            queue.enqueue(message)
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["wall"])
        left = queue.flush()
        assert reference in left
        return container not in left

    mends(streamlit_delivery.send_what_waits, is_lost)


def test_a_session_that_reconnects_gets_all_that_is_still_to_come():
    class Client:
        def __init__(self) -> None:
            self.got: list[str] = []

        def write_forward_msg(self, message: ForwardMsg) -> None:
            self.got.append(message.hash)
            self.after()

        def after(self) -> None: ...

    async def loses_some() -> bool:
        runtime = new_runtime()
        await runtime.start()
        first, second = Client(), Client()
        name = runtime.connect_session(first, {})

        def reconnect() -> None:
            if not second.got and runtime._session_mgr.is_active_session(name):
                first.after = lambda: None
                runtime.disconnect_session(name)
                runtime.connect_session(second, {}, name)

        first.after = reconnect
        visit = runtime._session_mgr.get_active_session_info(name).session
        for name_of_message in "abc":
            visit._enqueue_forward_msg(ForwardMsg(hash=name_of_message))
        try:
            async with asyncio.timeout(30):
                while len(first.got + second.got) < 3:
                    await asyncio.sleep(0.001)
        finally:
            runtime.stop()
            await runtime.stopped
        return second.got != ["b", "c"]

    mends(streamlit_delivery.send_on_newest_connection, loses_some)
