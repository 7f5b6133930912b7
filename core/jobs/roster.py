"""Which workers there are, by what the scheduler tells about once a second.

A machine that loses its power or its network says no goodbye, and the scheduler takes
half a minute to be sure. Who watches the app is told sooner: a worker tells the
scheduler twice a second that it is there.
"""

import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from core.measure.environment import Machine

SILENT_SECONDS = 7.0  # until who says nothing counts as gone


class _Worker(NamedTuple):
    word: float  # when it last said something, by the scheduler's clock
    heard: float  # when that was news, by ours
    takes: Counter[str]  # jobs at once, by lane
    name: str

    @property
    def machine(self) -> str:
        return host_of(self.name)


class Host(NamedTuple):
    """A machine that has workers."""

    name: str  # "" where they are the app's own
    speaker: str  # the address of one of them, of the lab where it has one
    trains: int  # training workers
    answers: bool  # whether one of them is heard
    machine: Machine | None = None  # as it describes itself, once it has


def host_of(worker: str) -> str:
    """The name of the machine that a worker of that name is on."""
    return re.sub(r"-?(train-\d+|lab)$", "", worker)


def first_gpu(worker: str) -> int:
    """Which GPU of its machine a worker of that name calls its first."""
    own = re.search(r"train-(\d+)$", worker)
    return int(own[1]) if own else 0


class Roster:
    """Of one connection at a time; one thread writes, any may read."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """There is a new connection, through which nothing was heard yet."""
        # Jobs that workers take, by lane; of training also by machine, see job.on.
        self.capacity: Counter[str] = Counter()
        self._workers: dict[str, _Worker] = {}
        self._told = self._since = time.monotonic()
        self._staffed: dict[str, float] = {}  # when a lane had a worker

    def hear(self, told: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
        """Take in what the scheduler says of its workers; what they take at once."""
        now, workers = time.monotonic(), {}
        for address, each in told.items():
            word, known = each["last_seen"], self._workers.get(address)
            heard = known.heard if known and known.word == word else now
            takes = Counter({k: int(n) for k, n in each["resources"].items()})
            workers[address] = _Worker(word, heard, takes, str(each["name"]))
        self._workers, self._told = workers, now
        self.capacity = sum((each.takes for each in workers.values()), Counter())
        self._staffed.update(dict.fromkeys(self.capacity, now))
        return self.capacity

    def others(self, lane: str, hosts: Collection[str]) -> list[str]:
        """The addresses of the lane's workers on other machines than these."""
        known = self._workers.items()
        return [k for k, v in known if v.takes[lane] and v.machine not in hosts]

    def seconds_without(self, lane: str) -> float:
        """For how long there has been no worker that takes jobs of the lane."""
        if self.capacity[lane]:
            return 0.0
        return time.monotonic() - self._staffed.get(lane, self._since)

    def hosts(self) -> list[Host]:
        """The machines that have workers, also those that are silent, by name."""
        since, known = time.monotonic() - SILENT_SECONDS, self._workers
        hosts = []
        for name in sorted({each.machine for each in known.values()}):
            own = {k: each for k, each in known.items() if each.machine == name}
            heard = [k for k, each in own.items() if each.heard > since]
            speaker = max(heard or own, key=lambda k: (own[k].takes["lab"], k))
            trains = sum(each.takes["train"] for each in own.values())
            hosts.append(Host(name, speaker, trains, bool(heard)))
        return hosts

    def speakers(self) -> dict[str, str]:
        """Names and addresses of workers that are heard, and see all devices.

        The lab of a machine does; where there is none, all that train do together.
        """
        since = time.monotonic() - SILENT_SECONDS
        heard = {k: each for k, each in self._workers.items() if each.heard > since}
        labs = {each.machine for each in heard.values() if each.takes["lab"]}
        return {
            each.name: address
            for address, each in heard.items()
            if each.takes["lab"] or each.machine not in labs
        }

    def answering(self) -> Counter[str] | None:
        """The capacity of the workers that are heard; None: the scheduler is not."""
        since = time.monotonic() - SILENT_SECONDS
        if self._told < since:
            return None
        heard = (each.takes for each in self._workers.values() if each.heard > since)
        return sum(heard, Counter())
