"""The order in which jobs go to workers.

Each lane has its own queue, which is fair between people (start-time fair queueing). A
new job gets the round after its owner's last round, or the current round if that is
later. The lowest round is served first, and within a round, the oldest job.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.jobs.job import Job, on

# At most so many later jobs may go before a job: enough for a whole class of newcomers.
PATIENCE = 100
# How many of one person's jobs a lane's workers take at once, even while other workers
# are idle, so that the next person needn't wait.
AT_ONCE = {"lab": 1}


@dataclass(eq=False)
class _Ticket:
    job: Job
    number: int  # in the order of arrival
    round: int
    passed: int = 0  # how many later jobs were taken first


class Queue:
    """The jobs that wait, and those that workers have taken, until they are removed.

    Not safe to use from several threads at once.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Ticket] = {}  # by job id
        self._taken: dict[str, _Ticket] = {}
        self._came = 0  # how many jobs have come so far
        self._round: Counter[str] = Counter()  # the round that each lane serves now
        # For a lane and a person, the round in which the person's last job was served.
        self._served: dict[tuple[str, str], int] = {}
        self._lanes: dict[str, list[_Ticket]] = {}  # cache: waiting tickets in order

    def add(self, job: Job) -> int:
        """Queue the job in its owner's next free round; returns the round."""
        others = self._lane(job.lane)
        own = [each.round for each in others if each.job.turn_of == job.turn_of]
        own.append(self._served.get((job.lane, job.turn_of), -1))
        firm = [each.round for each in others if self._overtaken(each) >= PATIENCE]
        turn = max(self._round[job.lane], max(own) + 1, *firm)
        self._wait(job, turn)
        return turn

    def restore(self, jobs: Iterable[tuple[Job, int]]) -> None:
        """Fill a new queue with jobs in their order, each with its round.

        In each lane, the lowest round of the lane's jobs becomes the current round.
        """
        for job, turn in jobs:
            self._wait(job, turn)
        for lane in {job.lane for job in self.jobs()}:
            self._round[lane] = self._lane(lane)[0].round

    def _wait(self, job: Job, turn: int) -> None:
        self._came += 1
        self._waiting[job.id] = _Ticket(job, self._came, turn)
        self._lanes.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def jobs(self) -> list[Job]:
        tickets = (*self._waiting.values(), *self._taken.values())
        return [each.job for each in tickets]

    def waiting(self, lane: str) -> list[Job]:
        return [each.job for each in self._lane(lane)]

    def taken(self, lane: str) -> list[Job]:
        return [t.job for t in self._taken.values() if t.job.lane == lane]

    def of(self, person: str) -> int:
        return sum(job.turn_of == person for job in self.jobs())

    def place(self, job_id: str) -> int:
        """The job's place in its lane, from 1; 0 if it isn't waiting.

        Each newcomer who has had fewer turns moves the job back by one place, but at
        most PATIENCE newcomers do, and none in the round that is being served.
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
        """The job whose turn it is, if a worker is free for it.

        `capacity` is how many jobs each lane's workers take at once. A lane without
        workers takes one job, because its worker is starting. `hosts` maps the ids of
        taken jobs to their machines, if known. A job that waits for a certain machine
        lets other jobs pass.
        """
        for lane in dict.fromkeys(each.job.lane for each in self._waiting.values()):
            taken = self.taken(lane)
            at = Counter(job.host or hosts.get(job.id, "") for job in taken)
            if lane in paused or len(taken) >= max(1, capacity.get(lane, 0)):
                continue
            for job in self.waiting(lane):
                if job.host and at[job.host] >= capacity.get(on(job.host), 0):
                    continue
                own = sum(each.turn_of == job.turn_of for each in taken)
                if not job.owner or own < AT_ONCE.get(lane, math.inf):
                    return job
        return None

    def take(self, job: Job) -> None:
        ticket = self._waiting.pop(job.id)
        self._taken[job.id] = ticket
        self._lanes.clear()
        for each in self._lane(job.lane):
            each.passed += each.number < ticket.number
        turn = max(ticket.round, self._round[job.lane])
        self._round[job.lane] = turn
        self._served[job.lane, job.turn_of] = ticket.round
        # Somebody whose last round has passed counts as a newcomer.
        self._served = {
            (lane, owner): last
            for (lane, owner), last in self._served.items()
            if lane != job.lane or last >= turn
        }

    def put_back(self, job_id: str) -> None:
        """Let the job be next again: its worker was lost before the job began."""
        self._waiting[job_id] = self._taken.pop(job_id)
        self._lanes.clear()

    def remove(self, job_id: str) -> None:
        """Drop a job; a job that isn't here changes nothing."""
        self._waiting.pop(job_id, None)
        self._taken.pop(job_id, None)
        self._lanes.clear()
        busy = {job.lane for job in self.jobs()}
        self._round = Counter({k: n for k, n in self._round.items() if k in busy})
        self._served = {k: n for k, n in self._served.items() if k[0] in busy}

    def _lane(self, lane: str) -> list[_Ticket]:
        if lane not in self._lanes:
            tickets = (t for t in self._waiting.values() if t.job.lane == lane)
            self._lanes[lane] = sorted(tickets, key=lambda t: (t.round, t.number))
        return self._lanes[lane]

    def _overtaken(self, ticket: _Ticket) -> int:
        """The number of later jobs that go or went before this one."""
        return ticket.passed + sum(
            each.number > ticket.number and each.round < ticket.round
            for each in self._lane(ticket.job.lane)
        )
