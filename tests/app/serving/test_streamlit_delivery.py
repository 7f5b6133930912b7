"""Each patch has a test that fails once Streamlit doesn't need the patch any more."""

import asyncio

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from core.serving import streamlit_delivery
from tests.app.serving.connections import mends, new_runtime


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
