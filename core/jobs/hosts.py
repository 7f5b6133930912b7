"""What the machines that have workers say of themselves."""

import logging
import threading
from collections.abc import Callable

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
