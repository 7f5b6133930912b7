"""The order of jobs: who waits, in which place, and whose turn it is. Without Dask.

Each lane is a queue of its own, fair between people: start-time fair queueing. A job
that comes is given a round, the one after its owner's last or the one that is being
served, whichever is later. The lowest round is served first, and in it whoever came
first: whose turn was longest ago goes next, and a newcomer enters at the current round.

A job takes part until it is removed: it waits, then it is taken and keeps a worker of
its lane busy.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.jobs.job import Job, on

# Nobody overtakes a job that so many have overtaken who came later: however many
# newcomers there are, its turn comes. All of a class of newcomers may.
PATIENCE = 100
# Jobs of one person that workers of a lane have at once, even while some are idle: the
# next person must not have to wait for them.
AT_ONCE = {"lab": 1, "question": 2, "upload": 1}


@dataclass(eq=False)
class _Ticket:
    """A job that waits."""

    job: Job
    number: int  # in the order they came
    round: int
    passed: int = 0  # how many came later and have had their turn


class Queue:
    """Whoever uses it sees to it that only one thread does."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Ticket] = {}  # by their jobs' ids
        self._taken: dict[str, _Ticket] = {}
        self._came = 0  # how many jobs
        self._round: Counter[str] = Counter()  # of each lane: the one being served
        self._served: dict[tuple[str, str], int] = {}  # lane, owner: their last round
        self._lanes: dict[str, list[_Ticket]] = {}  # in order, until something changes

    def add(self, job: Job) -> int:
        """Wait in the first round that this job's owner has no turn in yet: this."""
        others = self._lane(job.lane)
        own = [each.round for each in others if each.job.turn_of == job.turn_of]
        own.append(self._served.get((job.lane, job.turn_of), -1))
        firm = [each.round for each in others if self._overtaken(each) >= PATIENCE]
        turn = max(self._round[job.lane], max(own) + 1, *firm)
        self._wait(job, turn)
        return turn

    def restore(self, jobs: Iterable[tuple[Job, int]]) -> None:
        """Let jobs wait in the rounds that they had, when the queue is made anew.

        They come in order. Whoever joins them then enters at the lowest.
        """
        for job, turn in jobs:
            self._wait(job, turn)
        for lane in {job.lane for job in self._jobs()}:
            self._round[lane] = self._lane(lane)[0].round

    def _wait(self, job: Job, turn: int) -> None:
        self._came += 1
        self._waiting[job.id] = _Ticket(job, self._came, turn)
        self._lanes.clear()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def waiting(self, lane: str) -> list[Job]:
        """The jobs of a lane that wait, in the order of their turns."""
        return [each.job for each in self._lane(lane)]

    def taken(self, lane: str) -> list[Job]:
        """The jobs of a lane that workers have."""
        return [t.job for t in self._taken.values() if t.job.lane == lane]

    def of(self, person: str) -> int:
        """How many jobs of this person wait or are taken."""
        return sum(job.turn_of == person for job in self._jobs())

    def others(self, job_id: str) -> int:
        """How many wait or are taken, but for this one."""
        return sum(job.id != job_id for job in self._jobs())

    def place(self, job_id: str) -> int:
        """The job's place in its lane, from 1; 0 when it does not wait.

        Only somebody who joins with fewer turns makes it worse: by one each, in the
        round that is being served not at all, and in all by PATIENCE at most.
        """
        if job_id not in self._waiting:
            return 0
        ticket = self._waiting[job_id]
        return self._lane(ticket.job.lane).index(ticket) + 1

    def next(
        self,
        capacity: Mapping[str, int],
        paused: Collection[str] = (),
        hosts: Mapping[str, str] = MappingProxyType({}),
    ) -> Job | None:
        """The job whose turn it is, if a worker is free for it; of lanes that go on.

        `capacity` says how many jobs of each lane the workers take at once. A lane that
        has no worker just now counts for one: its worker is starting. A job for one
        machine waits for that, while others may pass; `hosts` says where the jobs are
        that workers have, as far as that is known.
        """
        for lane in dict.fromkeys(each.job.lane for each in self._waiting.values()):
            busy = Counter(job.turn_of for job in self.taken(lane))
            at = self.at(lane, hosts)
            if lane in paused or at.total() >= max(1, capacity.get(lane, 0)):
                continue
            for job in self.waiting(lane):
                if any(at[each] >= capacity.get(on(each), 0) for each in job.hosts):
                    continue
                if not job.owner or busy[job.turn_of] < AT_ONCE.get(lane, math.inf):
                    return job
        return None

    def at(self, lane: str, hosts: Mapping[str, str]) -> Counter[str]:
        """How many workers of each machine have work of the lane; see `next`."""
        taken = self.taken(lane)
        return Counter(
            host for job in taken for host in job.hosts or [hosts.get(job.id, "")]
        )

    def lent(self, capacity: Mapping[str, int], hosts: Mapping[str, str]) -> set[str]:
        """Machines that are busy, though they may do nothing between parts of a job."""
        at = self.at("train", hosts)
        lent = {each for job in self.taken("train") for each in job.hosts[1:]}
        return {each for each in lent if at[each] >= capacity.get(on(each), 0)}

    def take(self, job: Job) -> None:
        """A worker gets this job."""
        ticket = self._waiting.pop(job.id)
        self._taken[job.id] = ticket
        self._lanes.clear()
        for each in self._lane(job.lane):
            each.passed += each.number < ticket.number
        turn = max(ticket.round, self._round[job.lane])
        self._round[job.lane] = turn
        self._served[job.lane, job.turn_of] = ticket.round
        # Who had a turn in an earlier round only is as good as new.
        self._served = {
            (lane, owner): last
            for (lane, owner), last in self._served.items()
            if lane != job.lane or last >= turn
        }

    def put_back(self, job_id: str) -> None:
        """The worker was lost before it began: the job is next in its lane again."""
        self._waiting[job_id] = self._taken.pop(job_id)
        self._lanes.clear()

    def remove(self, job_id: str) -> None:
        """The job has ended, if it ever was there."""
        self._waiting.pop(job_id, None)
        self._taken.pop(job_id, None)
        self._lanes.clear()
        # Once a lane is empty nobody is owed a turn in it.
        busy = {job.lane for job in self._jobs()}
        self._round = Counter({k: n for k, n in self._round.items() if k in busy})
        self._served = {k: n for k, n in self._served.items() if k[0] in busy}

    def _jobs(self) -> list[Job]:
        """All that wait or are taken."""
        tickets = (*self._waiting.values(), *self._taken.values())
        return [each.job for each in tickets]

    def _lane(self, lane: str) -> list[_Ticket]:
        """Who waits in a lane, in the order of their turns."""
        if lane not in self._lanes:
            tickets = (t for t in self._waiting.values() if t.job.lane == lane)
            self._lanes[lane] = sorted(tickets, key=lambda t: (t.round, t.number))
        return self._lanes[lane]

    def _overtaken(self, ticket: _Ticket) -> int:
        """How many came later than this one and go, or went, before it."""
        return ticket.passed + sum(
            each.number > ticket.number and each.round < ticket.round
            for each in self._lane(ticket.job.lane)
        )
