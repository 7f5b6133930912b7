"""The order in which jobs go to workers.

Each lane has its own queue, which is fair between people (start-time fair queueing). A
new job gets the round after its owner's last round, or the current round if that is
later. The lowest round is served first, and within a round, the oldest job. The app's
own jobs, which have no owner, let people go first.
"""

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from core.jobs.job import Job, host_resource

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
    """The jobs that wait, and those that workers have, until they are removed.

    Not safe to use from several threads at once.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Ticket] = {}  # by job id
        self._at_work: dict[str, _Ticket] = {}
        self._count = 0  # how many jobs have come so far
        self._round: Counter[str] = Counter()  # the round that each lane serves now
        # For a lane and a person, the round in which the person's last job was served.
        self._served: dict[tuple[str, str], int] = {}
        self._lanes: dict[str, list[_Ticket]] = {}  # cache: waiting tickets in order

    def add(self, job: Job) -> int:
        """Queue the job in its owner's next free round; returns the round."""
        tickets = self._lane(job.lane)
        own_rounds = [t.round for t in tickets if t.job.turn_of == job.turn_of]
        own_rounds.append(self._served.get((job.lane, job.turn_of), -1))
        fixed_rounds = [t.round for t, n in overtaken(tickets) if n >= PATIENCE]
        turn = max(self._round[job.lane], max(own_rounds) + 1, *fixed_rounds)
        self._wait(job, turn)
        return turn

    def restore(self, jobs: Iterable[tuple[Job, int]]) -> None:
        """Fill a new queue with jobs in their order, each with its round.

        In each lane, the lowest round of the lane's jobs becomes the current round.
        """
        for job, turn in jobs:
            self._wait(job, turn)
        for lane in {job.lane for job in self.jobs()}:
            self._round[lane] = min(ticket.round for ticket in self._lane(lane))

    def _wait(self, job: Job, turn: int) -> None:
        self._count += 1
        self._waiting[job.id] = _Ticket(job, self._count, turn)
        self._lanes.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def jobs(self) -> list[Job]:
        tickets = (*self._waiting.values(), *self._at_work.values())
        return [ticket.job for ticket in tickets]

    def waiting(self, lane: str) -> list[Job]:
        return [ticket.job for ticket in self._lane(lane)]

    def at_work(self, lane: str) -> list[Job]:
        return [t.job for t in self._at_work.values() if t.job.lane == lane]

    def count_of(self, person: str) -> int:
        return sum(job.turn_of == person for job in self.jobs())

    def place(self, job_id: str) -> int:
        """The job's place in its lane, from 1; 0 if it isn't waiting.

        A newcomer who has had fewer turns goes before the job, which then moves back by
        one place. At most PATIENCE newcomers go before a job, and none go before a job
        of the round that is being served.
        """
        ticket = self._waiting.get(job_id)
        return self._lane(ticket.job.lane).index(ticket) + 1 if ticket else 0

    def next(
        self,
        capacity: Mapping[str, int],
        paused: Collection[str] = (),
        hosts: Mapping[str, str] = MappingProxyType({}),
    ) -> Job | None:
        """The job whose turn it is, if a worker is free for it.

        `capacity` is how many jobs each lane's workers take at once. A lane without
        workers takes one job, because its worker is starting. `hosts` maps the ids of
        jobs at work to their machines, if known. A job that waits for a certain machine
        lets other jobs pass.
        """
        for lane in dict.fromkeys(t.job.lane for t in self._waiting.values()):
            at_work = self.at_work(lane)
            busy = Counter(job.host or hosts.get(job.id, "") for job in at_work)
            if lane in paused or len(at_work) >= max(1, capacity.get(lane, 0)):
                continue
            for job in self.waiting(lane):
                if job.host and busy[job.host] >= capacity.get(
                    host_resource(job.host), 0
                ):
                    continue
                own = sum(other.turn_of == job.turn_of for other in at_work)
                if not job.owner or own < AT_ONCE.get(lane, math.inf):
                    return job
        return None

    def take(self, job: Job) -> None:
        ticket = self._waiting.pop(job.id)
        self._at_work[job.id] = ticket
        self._lanes.clear()
        for waiting in self._lane(job.lane):
            waiting.passed += waiting.number < ticket.number
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
        self._waiting[job_id] = self._at_work.pop(job_id)
        self._lanes.clear()

    def remove(self, job_id: str) -> None:
        """Drop a job; a job that isn't here changes nothing."""
        self._waiting.pop(job_id, None)
        self._at_work.pop(job_id, None)
        self._lanes.clear()
        lanes = {job.lane for job in self.jobs()}
        self._round = Counter({k: n for k, n in self._round.items() if k in lanes})
        self._served = {k: n for k, n in self._served.items() if k[0] in lanes}

    def _lane(self, lane: str) -> list[_Ticket]:
        if lane not in self._lanes:
            tickets = (t for t in self._waiting.values() if t.job.lane == lane)
            self._lanes[lane] = sorted(tickets, key=_order)
        return self._lanes[lane]


def _order(ticket: _Ticket) -> tuple[bool, int, int]:
    lets_pass = not ticket.job.owner and ticket.passed < PATIENCE
    return lets_pass, ticket.round, ticket.number


def overtaken(tickets: Iterable[_Ticket]) -> Iterator[tuple[_Ticket, int]]:
    """For a lane's tickets in order: how many later jobs go or went before each."""
    numbers: list[int] = []  # of the tickets before this one, the lowest first
    for ticket in tickets:
        later = len(numbers) - bisect_right(numbers, ticket.number)
        yield ticket, ticket.passed + later
        insort(numbers, ticket.number)
