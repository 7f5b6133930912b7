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

from distributed import Security
from distributed.core import connect, send_recv

from core.jobs.worker import answer as worker_answer
from core.measure.environment import Machine

logger = logging.getLogger(__name__)

SILENT_SECONDS = 7.0  # a worker that is silent for longer counts as gone
TELL_SECONDS = 15.0  # pages tell what is silent for longer


class _Worker(NamedTuple):
    sent: float  # when the worker last reported, by the scheduler's clock
    noticed: float  # when the app noticed that report, by the app's clock
    takes: Counter[str]  # how many jobs the worker takes at once, by lane
    name: str
    forks: str  # "stopped" or "ended" if its server of forks is; otherwise, ""

    @property
    def machine(self) -> str:
        return host_of(self.name)

    @property
    def silence(self) -> float:
        """Seconds since the app noticed a report."""
        return time.monotonic() - self.noticed

    @property
    def answers(self) -> bool:
        return self.silence < SILENT_SECONDS


class Host(NamedTuple):
    name: str  # "" if the workers are the app's own
    address: str  # of the worker to ask: the lab worker, if there is one
    trains: int  # training workers
    answers: bool  # whether any of its workers has reported lately
    machine: Machine | None = None  # None until the machine has described itself


def host_of(worker: str) -> str:
    """The machine of a worker, from the worker's name."""
    return re.sub(r"-?(train-\d+|lab)$", "", worker)


def first_gpu(worker: str) -> int:
    """The first GPU of a training worker, by the number in its name; 0 for others."""
    number = re.search(r"train-(\d+)$", worker)
    return int(number[1]) if number else 0


class Hosts:
    """The machines of one connection; only one thread writes, and any may read.

    Each machine describes itself once, in the background, so that nobody has to wait.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the field below
        self.security = Security()  # with what to ask workers; the connection's own
        # The machine at the address of each Host.address; None until it has answered.
        self._described: dict[str, Machine | None] = {}
        self.clear()

    def clear(self) -> None:
        """Forget all workers, since a new connection has reported none yet."""
        # How many jobs workers take at once: by lane, and for training also by machine,
        # with the key `core.jobs.job.host_resource(host)`.
        self.capacity: Counter[str] = Counter()
        self._workers: dict[str, _Worker] = {}
        self._updated = self._since = time.monotonic()
        self._staffed: dict[str, float] = {}  # when a lane last had a worker

    def update(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in the scheduler's report on each worker, keyed by worker address.

        While nobody could ask the scheduler, as during a laptop's sleep, no worker was
        silent.
        """
        now, workers = time.monotonic(), {}
        asleep = now - self._updated if self.silence > SILENT_SECONDS else 0.0
        for address, report in reports.items():
            sent, before = report["last_seen"], self._workers.get(address)
            noticed = now
            if before is not None and before.sent == sent:
                noticed = before.noticed + asleep
            takes = Counter({k: int(n) for k, n in report["resources"].items()})
            forks = str(report.get("metrics", {}).get("forks", ""))
            name = str(report["name"])
            workers[address] = _Worker(sent, noticed, takes, name, forks)
        self._workers, self._updated = workers, now
        self.capacity = sum((worker.takes for worker in workers.values()), Counter())
        self._staffed.update(dict.fromkeys(self.capacity, now))

    def seconds_without(self, lane: str) -> float:
        if self.capacity[lane]:
            return 0.0
        return time.monotonic() - self._staffed.get(lane, self._since)

    @property
    def silence(self) -> float:
        """Seconds since the scheduler's last report."""
        return time.monotonic() - self._updated

    def silent(self, seconds: float) -> set[str]:
        """The addresses of workers that have been silent for so many seconds."""
        return {a for a, w in self._workers.items() if w.silence >= seconds}

    def is_silent(self, name: str) -> bool:
        """Whether pages should tell that the worker with this name doesn't answer."""
        workers = [w for w in self._workers.values() if w.name == name]
        return any(w.silence >= TELL_SECONDS for w in workers)

    def all_silent(self, lane: str) -> bool:
        """Whether the lane has workers, and pages should tell that none answers."""
        workers = [w for w in self._workers.values() if w.takes[lane]]
        return bool(workers) and all(w.silence >= TELL_SECONDS for w in workers)

    @property
    def forks(self) -> str:
        """ "stopped" or "ended" if a worker's server of forks is; otherwise, ""."""
        workers = self._workers.values()
        return next((w.forks for w in workers if w.forks and w.answers), "")

    def answering(self) -> Counter[str] | None:
        """The capacity of the reporting workers; None if the scheduler is silent."""
        if self.silence >= SILENT_SECONDS:
            return None
        workers = self._workers.values()
        return sum((worker.takes for worker in workers if worker.answers), Counter())

    def __call__(self) -> list[Host]:
        """All machines in the order of their names, even silent ones.

        If there are several, each has its `machine`, or None until it was described.
        """
        workers, hosts = self._workers, []
        for name in sorted({worker.machine for worker in workers.values()}):
            own = {a: worker for a, worker in workers.items() if worker.machine == name}
            answering = [address for address, worker in own.items() if worker.answers]
            to_ask = max(answering or own, key=lambda a: (own[a].takes["lab"], a))
            trains = sum(worker.takes["train"] for worker in own.values())
            hosts.append(Host(name, to_ask, trains, bool(answering)))
        if len(hosts) < 2:  # the pages describe the only machine anyway
            return hosts
        with self._lock:
            before = self._described
            machines = {host.address: before.get(host.address) for host in hosts}
            self._described = dict(machines)  # `_ask` changes this dictionary
        for address in machines.keys() - before.keys():
            threading.Thread(target=self._ask, args=(address,), daemon=True).start()
        return [host._replace(machine=machines[host.address]) for host in hosts]

    def _ask(self, address: str) -> None:
        machine = None
        try:
            question = "core.devices:describe"
            machine = asyncio.run(_answer(address, question, self.security))
        except Exception as error:  # the next call asks again, if the worker is alive
            logger.warning("could not get a machine's description: %s", error)
        with self._lock:
            if machine is None:
                self._described.pop(address, None)
            elif address in self._described:
                self._described[address] = machine

    def workers_to_ask(self) -> dict[str, str]:
        """The workers to ask about each machine's devices, as {name: address}.

        A lab worker sees all devices of its machine. On a machine without a lab
        worker, these are all training workers, which together see all devices.
        Workers that don't answer are left out.
        """
        workers = {k: worker for k, worker in self._workers.items() if worker.answers}
        labs = {worker.machine for worker in workers.values() if worker.takes["lab"]}
        return {
            worker.name: address
            for address, worker in workers.items()
            if worker.takes["lab"] or worker.machine not in labs
        }

    def answers(self, question: str, seconds: float) -> dict[str, Any]:
        """Call a quick function on `workers_to_ask`; returns {worker's name: answer}.

        They answer even while they train. Answers that take longer than `seconds`
        are left out.
        """

        async def all_answers() -> list[Any]:
            answers = (
                asyncio.wait_for(_answer(address, question, self.security), seconds)
                for address in asked.values()
            )
            return await asyncio.gather(*answers, return_exceptions=True)

        asked = self.workers_to_ask()
        answers = zip(asked, asyncio.run(all_answers()), strict=True)
        return {k: v for k, v in answers if not isinstance(v, BaseException)}


async def _answer(address: str, question: str, keys: Security) -> Any:
    """Ask a worker directly: the scheduler would wait for a dead machine."""
    arguments = keys.get_connection_args("client")
    comm = await connect(address, **arguments)
    try:
        function, args = pickle.dumps(worker_answer), pickle.dumps((question, ()))
        reply = await send_recv(comm, op="run", function=function, args=args)
        return reply["result"].get()
    finally:
        comm.abort()
