"""The machines that have workers, as the scheduler and the workers report them.

When a machine loses power or its network, the scheduler drops its workers after half a
minute. The app doesn't wait for that. It asks the scheduler when each worker last gave
a sign of life, which workers do twice a second.
"""

import asyncio
import logging
import pickle
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from distributed.core import connect, send_recv

from core.jobs import worker
from core.jobs.cluster import security
from core.measure.environment import Machine

logger = logging.getLogger(__name__)

SILENT_SECONDS = 7.0  # a worker that is silent for longer counts as gone


class _Worker(NamedTuple):
    word: float  # when the worker last reported, by the scheduler's clock
    heard: float  # when the app noticed that report, by the app's clock
    takes: Counter[str]  # how many jobs the worker takes at once, by lane
    name: str

    @property
    def machine(self) -> str:
        return host_of(self.name)

    @property
    def answers(self) -> bool:
        return self.heard > time.monotonic() - SILENT_SECONDS


class Host(NamedTuple):
    name: str  # "" if the workers are the app's own
    speaker: str  # the address of the worker to ask: the lab's, if there is one
    trains: int  # training workers
    answers: bool  # whether any worker reports
    machine: Machine | None = None  # None until the machine has described itself


def host_of(worker: str) -> str:
    """The machine of a worker, from the worker's name."""
    return re.sub(r"-?(train-\d+|lab)$", "", worker)


def first_gpu(worker: str) -> int:
    """The first GPU of a training worker, by the number in its name; 0 for others."""
    own = re.search(r"train-(\d+)$", worker)
    return int(own[1]) if own else 0


class Hosts:
    """The machines of one connection; only one thread writes, and any may read.

    Each machine is described once, in the background, so nobody waits for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the field below
        # For a speaker's address, its machine; None until the speaker has answered.
        self._described: dict[str, Machine | None] = {}
        self.clear()

    def clear(self) -> None:
        """Forget all workers, since a new connection has reported none yet."""
        # How many jobs workers take at once: by lane, and for training also by machine,
        # with the key `core.jobs.job.on(host)`.
        self.capacity: Counter[str] = Counter()
        self._workers: dict[str, _Worker] = {}
        self._told = self._since = time.monotonic()
        self._staffed: dict[str, float] = {}  # when a lane last had a worker

    def hear(self, told: Mapping[str, Mapping[str, Any]]) -> None:
        now, workers = time.monotonic(), {}
        for address, said in told.items():
            word, known = said["last_seen"], self._workers.get(address)
            heard = known.heard if known and known.word == word else now
            takes = Counter({k: int(n) for k, n in said["resources"].items()})
            workers[address] = _Worker(word, heard, takes, str(said["name"]))
        self._workers, self._told = workers, now
        self.capacity = sum((each.takes for each in workers.values()), Counter())
        self._staffed.update(dict.fromkeys(self.capacity, now))

    def seconds_without(self, lane: str) -> float:
        if self.capacity[lane]:
            return 0.0
        return time.monotonic() - self._staffed.get(lane, self._since)

    def answering(self) -> Counter[str] | None:
        """The capacity of the reporting workers; None if the scheduler is silent."""
        if time.monotonic() >= self._told + SILENT_SECONDS:
            return None
        takes = (each.takes for each in self._workers.values() if each.answers)
        return sum(takes, Counter())

    def __call__(self) -> list[Host]:
        """All machines in the order of their names, even silent ones.

        If there are several, each has its `machine`, or None until it was described.
        """
        workers, hosts = self._workers, []
        for name in sorted({each.machine for each in workers.values()}):
            own = {k: each for k, each in workers.items() if each.machine == name}
            heard = [k for k, each in own.items() if each.answers]
            speaker = max(heard or own, key=lambda k: (own[k].takes["lab"], k))
            trains = sum(each.takes["train"] for each in own.values())
            hosts.append(Host(name, speaker, trains, bool(heard)))
        if len(hosts) < 2:  # the pages describe the only machine anyway
            return hosts
        with self._lock:
            known = self._described
            self._described = {host.speaker: known.get(host.speaker) for host in hosts}
            described = dict(self._described)
        for address in described.keys() - known.keys():
            threading.Thread(target=self._ask, args=(address,), daemon=True).start()
        return [host._replace(machine=described[host.speaker]) for host in hosts]

    def _ask(self, address: str) -> None:
        machine = None
        try:
            machine = asyncio.run(_answer(address, "core.devices:describe"))
        except Exception as error:  # the next call asks again, if the worker is alive
            logger.warning("could not get a machine's description: %s", error)
        with self._lock:
            if machine is None:
                self._described.pop(address, None)
            elif address in self._described:
                self._described[address] = machine

    def speakers(self) -> dict[str, str]:
        """Names and addresses of reporting workers that see all of a machine's devices.

        These are a machine's lab worker, or without one, all its training workers.
        """
        heard = {k: each for k, each in self._workers.items() if each.answers}
        labs = {each.machine for each in heard.values() if each.takes["lab"]}
        return {
            each.name: address
            for address, each in heard.items()
            if each.takes["lab"] or each.machine not in labs
        }

    def answers(self, question: str, seconds: float) -> dict[str, Any]:
        """Call a quick function on all `speakers`; returns {worker's name: answer}.

        Speakers answer even while they train. Answers that take longer than `seconds`
        are left out.
        """

        async def all_answers() -> list[Any]:
            asked = (
                asyncio.wait_for(_answer(address, question), seconds)
                for address in speakers.values()
            )
            return await asyncio.gather(*asked, return_exceptions=True)

        speakers = self.speakers()
        answers = zip(speakers, asyncio.run(all_answers()), strict=True)
        return {k: v for k, v in answers if not isinstance(v, BaseException)}


async def _answer(address: str, question: str) -> Any:
    """Ask a worker directly: the scheduler would wait for a dead machine."""
    arguments = security(address).get_connection_args("client")
    comm = await connect(address, **arguments)
    try:
        call, given = pickle.dumps(worker.answer), pickle.dumps((question, ()))
        said = await send_recv(comm, op="run", function=call, args=given)
        return said["result"].get()
    finally:
        comm.abort()
