"""What the machines that have workers say of themselves."""

import asyncio
import logging
import pickle
import threading
from collections.abc import Callable
from typing import Any

from distributed.core import connect, send_recv

from core.jobs import worker
from core.jobs.certificates import security
from core.jobs.connection import in_background
from core.jobs.roster import Host, Roster
from core.measure.environment import Machine

logger = logging.getLogger(__name__)


class Hosts:
    """Nobody who looks waits: each is asked once, in the background, if not alone."""

    def __init__(self, roster: Roster, ask: Callable[[str], Machine]) -> None:
        """`ask` gets the address of a worker, and says what its machine is."""
        self._roster, self._ask = roster, ask
        self._lock = threading.Lock()  # for the next
        self._said: dict[str, Machine | None] = {}  # by worker; None: it is being asked

    def __call__(self) -> list[Host]:
        """Those that the scheduler knows of, in the order of their names."""
        found = self._roster.hosts()
        if len(found) < 2:  # pages are about that one anyway
            return found
        with self._lock:
            known = self._said
            self._said = {each.speaker: known.get(each.speaker) for each in found}
            said, new = dict(self._said), self._said.keys() - known.keys()
        for address in new:
            in_background(self._hear, address)
        return [each._replace(machine=said[each.speaker]) for each in found]

    def answers(self, question: str, seconds: float) -> dict[str, Any]:
        """What a quick function says on each machine, by the name of the worker.

        That is one, or all that train where each sees but its own device. They answer
        while they train, too. Who has not answered in time is left out.
        """
        return asyncio.run(_answers(self._roster.speakers(), question, seconds))

    def _hear(self, address: str) -> None:
        try:
            said = self._ask(address)
        except Exception as error:  # it has gone; if not, the next look asks again
            logger.warning("a machine does not describe itself: %s", error)
            with self._lock:
                self._said.pop(address, None)
            return
        with self._lock:
            if address in self._said:
                self._said[address] = said


async def _answers(
    speakers: dict[str, str], question: str, seconds: float
) -> dict[str, Any]:
    asked = (
        asyncio.wait_for(_answer(each, question), seconds) for each in speakers.values()
    )
    said = await asyncio.gather(*asked, return_exceptions=True)
    together = zip(speakers, said, strict=True)
    return {k: v for k, v in together if not isinstance(v, BaseException)}


async def _answer(address: str, question: str) -> Any:
    """Not by the scheduler: it would wait for a machine that has lost its power."""
    arguments = security(address).get_connection_args("client")
    comm = await connect(address, **arguments)
    try:
        call, given = pickle.dumps(worker.answer), pickle.dumps((question, ()))
        said = await send_recv(comm, op="run", function=call, args=given)
        return said["result"].get()
    finally:
        comm.abort()
