"""Submit, follow and cancel work on a Dask cluster, local or remote.

The web server holds one Engine. It never imports torch: functions are named by their
address ("core.training:run") and looked up in the worker that calls them.

Long jobs wait in a queue of our own, and go to a worker only when one is free. Dask
would take them at once, but fails all jobs that a worker holds when that worker dies,
also those it has not begun with.
"""

import logging
import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from core.errors import ExplainedError
from core.jobs import waits
from core.jobs.connection import Connection, in_background
from core.jobs.estimates import Estimates, work
from core.jobs.history import History
from core.jobs.hosts import Hosts
from core.jobs.job import Job, Jobs, Outcome, Stored
from core.jobs.limits import Gate, Limits, overdue
from core.jobs.queue import Queue
from core.jobs.roster import host_of
from core.jobs.turns import UPLOADS_AT_ONCE, Turns
from core.measure.environment import Machine
from core.store.store import Store

logger = logging.getLogger(__name__)

LAB_SECONDS = 60.0  # the lab has loaded torch by then, also on a slow machine
MACHINE_SECONDS = 3.0
PAUSED = "train"  # the lane that a teacher pauses and clears
TRIES = 3  # a job that its worker does not live to begin with is at fault itself


class Engine:
    """What a web server knows of its jobs; safe to use from threads."""

    def __init__(
        self,
        scheduler: str | None = None,
        on_end: Callable[[Job], object] = lambda _: None,
        store: Store | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Connect to the Dask scheduler there, or start a local cluster.

        `on_end` gets each job that has ended, once, and must not wait. Jobs that wait
        in the store go on waiting; without one they are kept until the engine closes.
        The `gate` is a class's, whose rules hold beside the limits of the server.
        """
        self._on_end = on_end
        self._own_store = None
        if store is None:
            store = self._own_store = Store.passing("")
        self._history = History(store)
        self._limits = Limits.from_environment()
        self._gate = gate or Gate()
        uploads = Turns(UPLOADS_AT_ONCE, "upload")
        self._turns = {"question": Turns(), "upload": uploads}
        self._dispatching = threading.Lock()  # taken before the next, if both are
        self._lock = threading.RLock()  # for the five that follow
        self._jobs = Jobs(self._history.hear)
        self._queue = Queue()
        self._estimates = Estimates()
        self._timers: dict[str, threading.Timer] = {}  # of jobs that workers have
        self._overdue: set[str] = set()  # jobs that are ended for that
        self._machine: Machine | None = None
        self._machine_due = 0.0  # when it is to be asked for again
        self._connection = Connection(
            scheduler,
            on_event=self._jobs.receive,
            on_end=self._when_ended,
            on_lost=self._when_lost,
            on_look=self._when_looked,
        )
        self.hosts = Hosts(self._connection.roster, self._connection.describe)
        waiting = [
            (replace(job, person=self._gate.person(job.owner)), turn)
            for job, turn in self._history.recover()
        ]
        for job, _ in waiting:
            self._jobs.add(job)
        self._queue.restore(waiting)
        self._connection.open()

    # Working with jobs

    def submit(
        self, address: str, *arguments: Any, lane: str = "train", owner: str = ""
    ) -> str:
        """Queue a call of the function at `address`; returns the job's id.

        The job is kept by then, or `Store.problem` says why it is not. ExplainedError
        where its owner, or all together, have too much in the queue, or where the class
        that is open does not allow it.
        """
        todo, person = work(address, arguments), self._gate.person(owner)
        job_id = uuid.uuid4().hex[:10]
        job = Job(job_id, address, arguments, lane, owner, work=todo, person=person)
        with self._lock:
            self._limits.check(job, self._queue, self._estimates)
            if owner:
                self._gate.admit(job, self._estimates.seconds(job))
            self._jobs.add(job)
            # Here, so that the row of a job is written before what happens to it.
            kept = self._history.queue(job, self._queue.add(job))
        self._history.wait(kept)
        self._dispatch()
        return job_id

    def job(self, job_id: str) -> Job | None:
        """The job as it stands now; None if nobody knows it.

        Raises StoreError where it is of earlier and can't be read.
        """
        return self._known(job_id) or self._history.job(job_id)

    def _known(self, job_id: str) -> Job | None:
        """A job that goes on, or has ended lately."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return job
            return job if job.status == "running" else self._waiting(job)

    def _waiting(self, job: Job) -> Job:
        """A job that no worker has begun with, and why; call it with the lock."""
        wait = waits.reason(job, self._connection)
        if wait.is_vain:
            self._connection.withdraw(job.id)
            self._end(job.id, Outcome("failed", message=wait.message))
            return self._jobs.get(job.id) or job
        return replace(job, message=wait.message, place=self._queue.place(job.id))

    def jobs(self, address: str, owner: str | None = None) -> list[Job]:
        """Jobs that call the function at `address`, of one owner or all, in order.

        Those that go on, and the newest of those that have ended.
        """
        with self._lock:
            ids = self._jobs.of(address, owner)
        return [job for job in map(self._known, ids) if job is not None]

    def going_on(self, owner: str | None = None) -> list[Job]:
        """All jobs of an owner, or of all, that wait or are worked on, in order."""
        with self._lock:
            ids = self._jobs.owned_by(owner)
        known = (self._known(job_id) for job_id in ids)
        return [job for job in known if job is not None and not job.ended]

    def wait(self, job_id: str) -> float | None:
        """Seconds until a job's turn, about; None where nobody can know."""
        with self._lock:
            place, job = self._queue.place(job_id), self._jobs.get(job_id)
            if job is None or not place:
                return None
            before = self._queue.waiting(job.lane)[: place - 1]
            if any(each.hosts for each in (job, *before)):
                return None  # it depends on when that machine is free
            taken = map(self._jobs.get, (j.id for j in self._queue.taken(job.lane)))
            return self._estimates.until_turn(filter(None, taken), before)

    def is_idle(self, but: str = "") -> bool:
        """Whether no job waits or is at a worker, but for the one of that id."""
        with self._lock:
            return not self._queue.others(but)

    def read(self, stored: Stored) -> bytes:
        """A checkpoint; ExplainedError where it is no longer kept, or can't be read."""
        return self._history.checkpoint(stored)

    def cancel(self, job_id: str) -> None:
        """End a job: at once where it waits, within one batch where it runs."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return
            if job.status == "running":
                return self._connection.cancel(job_id)
            # Where it is starting, its worker may be starting too, and deaf.
            self._connection.withdraw(job_id)
            self._end(job_id, Outcome("cancelled"))
        self._dispatch()

    @property
    def paused(self) -> bool:
        """Whether a teacher has paused the queue: nobody's turn comes meanwhile."""
        return self._gate.paused

    def clear(self) -> int:
        """Cancel all jobs that wait for their turn to train; how many those were."""
        with self._lock:
            waiting = self._queue.waiting(PAUSED)
            for job in waiting:
                self._end(job.id, Outcome("cancelled"))
        return len(waiting)

    def forget(self, owner: str, only: Collection[str] | None = None) -> None:
        """End all jobs of an owner, or some, and know nothing of them from now on.

        Whoever deletes their rows calls it before that and after it: somebody may be
        looking at them.
        """
        with self._lock:
            theirs = self._jobs.owned_by(owner)
        if only is not None:
            theirs = [job_id for job_id in theirs if job_id in only]
        for job_id in theirs:
            self.cancel(job_id)
        with self._lock:
            for job_id in theirs:
                self._jobs.remove(job_id)
        self._history.forget(owner, *theirs)

    def _end(self, job_id: str, outcome: Outcome) -> None:
        """Call it with the lock; what ends a job a second time changes nothing."""
        self._queue.remove(job_id)  # also where the job was forgotten
        self._stop_timer(job_id)
        job = self._jobs.get(job_id)
        if job is None or job.ended:
            return
        is_overdue = job_id in self._overdue and outcome.status != "finished"
        if is_overdue:
            most = self._most_seconds(job)
            outcome = Outcome("failed", message=overdue(most))
        ended = self._jobs.end(job_id, outcome)
        self._overdue.discard(job_id)
        if is_overdue or ended.status == "finished":
            self._estimates.learn(ended)
        self._history.end(ended, outcome.value)
        self._tell_end(ended)

    def _tell_end(self, job: Job) -> None:
        try:
            self._on_end(job)
        except Exception:  # what is wrong there is no fault of the job
            logger.exception("the end of job %s was not taken notice of", job.id)

    def _stop_timer(self, job_id: str) -> None:
        if timer := self._timers.pop(job_id, None):
            timer.cancel()

    def _watch_time(self, job_id: str) -> None:
        """End a job that has run for as long as one may; else look again then."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return
            begun = job.started if job.status == "running" else None
            left = self._most_seconds(job) - (time.time() - (begun or time.time()))
            if left > 0:
                timer = threading.Timer(left, self._watch_time, (job_id,))
                timer.daemon = True
                timer.start()
                self._timers[job_id] = timer
                return
            self._overdue.add(job_id)
        self.cancel(job_id)

    def _most_seconds(self, job: Job) -> float:
        return self._limits.seconds(self._gate.seconds(job.owner))

    def ask(
        self,
        address: str,
        *arguments: Any,
        seconds: float = 30.0,
        owner: str = "",
        lane: str = "question",
    ) -> Any:
        """The answer of a quick function on the lab worker.

        In the lane "upload" what a stranger sent is opened, two files at once.
        Nobody gets all of the worker's threads, but for the server itself, which has no
        owner. Raises ExplainedError where the function does, where no answer comes in
        time, or where the owner has too many questions open.
        """
        with self._turns[lane].take(owner, seconds) as left:
            return self._connection.ask(address, self._unpacked(arguments), left)

    def _unpacked(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """With the checkpoints; a worker has no access to them."""
        return tuple(
            self.read(each) if isinstance(each, Stored) else each for each in arguments
        )

    # Between jobs and workers

    @property
    def problem(self) -> str:
        """Why there are no workers, in a sentence; else empty."""
        return self._connection.problem

    def lanes(self) -> Counter[str] | None:
        """Jobs that workers take at once now, by lane; None: no scheduler answers."""
        return self._connection.answering()

    def machine(self) -> Machine | None:
        """The last that the workers said of this machine; None while they start.

        Asked anew, in the background, once it is stale.
        """
        with self._lock:
            if self._connection.is_up and time.monotonic() > self._machine_due:
                self._machine_due = math.inf  # one question at a time
                in_background(self._look)
        return self._machine

    def _look(self) -> None:
        try:
            machine = self.ask("core.devices:describe", seconds=LAB_SECONDS)
            status = self.ask("core.data.datasets:status")
            self._machine = replace(machine, fashion_mnist=status)
        except ExplainedError as error:
            logger.warning("the machine could not be described: %s", error)
        finally:
            self._machine_due = time.monotonic() + MACHINE_SECONDS
        self._dispatch()  # there may be more workers now, or a connection again

    def close(self) -> None:
        """End the connection, and the local cluster with it."""
        self._connection.close()
        if self._own_store is not None:
            self._own_store.close()

    def _dispatch(self) -> None:
        """Hand the next jobs of the queue to workers that are free."""
        if not (self._queue and self._connection.is_up):
            return
        try:
            with self._dispatching:
                while turn := self._next():
                    self._hand_out(*turn)
        except Exception:  # the connection broke; the jobs wait until it is back
            logger.warning("jobs have to wait", exc_info=True)

    def _next(self) -> tuple[Job, Collection[str]] | None:
        """Whose turn it is, if a worker is free, and the machines that are lent."""
        with self._lock:
            capacity = Counter(self._connection.roster.capacity)
            capacity["lab"] //= 2  # the rest of the lab is for quick questions
            paused = (PAUSED,) if self._gate.paused else ()
            taken = self._queue.taken(PAUSED)
            hosts = {job.id: host_of(self._jobs.worker(job.id)) for job in taken}
            job = self._queue.next(capacity, paused, hosts)
            return (job, self._queue.lent(capacity, hosts)) if job else None

    def _hand_out(self, job: Job, lent: Collection[str] = ()) -> None:
        try:
            # Without the lock: a database that does not answer must not stop the looks.
            arguments = self._unpacked(job.arguments)
        except ExplainedError as error:
            with self._lock:
                self._end(job.id, Outcome("failed", message=str(error)))
            return
        with self._lock:
            if self._queue.place(job.id):  # else it was cancelled meanwhile
                self._connection.hand_out(replace(job, arguments=arguments), lent)
                self._queue.take(job)
                self._jobs.start(job.id)
                self._watch_time(job.id)

    def _when_ended(self, job_id: str, outcome: Outcome) -> None:
        with self._lock:
            self._end(job_id, outcome)
        self._dispatch()

    def _when_lost(self, job_id: str, reason: str) -> None:
        """A job that no worker had begun with waits again, before the others."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None:  # it was forgotten
                self._queue.remove(job_id)
            elif job.ended:
                return
            elif job.status == "starting" and job.tries < TRIES:
                self._stop_timer(job_id)
                self._queue.put_back(job_id)
                self._jobs.put_back(job_id)
            else:
                self._end(job_id, Outcome("failed", message=reason))
        self._dispatch()

    def _when_looked(self) -> None:
        """Once a second or so."""
        with self._lock:
            self._jobs.file_events()  # to be kept, also while nobody looks
        if self._machine is None:
            self.machine()
        self.hosts()  # who looks later finds them described
        self._dispatch()
