"""Submit, follow and cancel work on a Dask cluster, local or remote.

The web server has one Engine and never imports torch: a function has an address
("core.training:run"), and the worker that calls the function looks it up.

Jobs wait in our own queue, and go to a worker only when one is free: when a worker
dies, Dask fails all of the worker's jobs, even those that had not begun.
"""

import logging
import math
import threading
import time
import uuid
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from core.jobs.admission import (
    Admission,
    Asker,
    Gate,
    Questions,
    gave_way,
    overdue,
)
from core.jobs.dask_connection import Connection, in_background
from core.jobs.estimates import work
from core.jobs.history import History
from core.jobs.hosts import host_of
from core.jobs.job import Job, Jobs, Outcome, Stored
from core.jobs.queue import Queue
from core.measure.environment import Machine
from core.store.store import Store
from core.watch import NO_CONTROL, Control
from to_device.errors import ExplainedError

logger = logging.getLogger(__name__)

# Time limit of a question to the lab, whose worker may have to load torch first.
LAB_SECONDS = 60.0
MACHINE_SECONDS = 3.0  # how long the machine's description is used without asking again
MOST_SPREADS = 2_000  # of the newest jobs
TRAIN_LANE = "train"  # a teacher can pause and clear this lane
CLOSE_SECONDS = 5.0  # the longest wait for the last events
TRIES = 3  # a job fails if so many workers end before they begin the job


class Engine:
    """A web server's jobs and workers; safe to use from threads."""

    def __init__(
        self,
        scheduler: str | None = None,
        on_end: Callable[[Job], object] = lambda _: None,
        store: Store | None = None,
        gate: Gate | None = None,
    ) -> None:
        """Connect to the Dask scheduler at an address, or start a local cluster.

        `on_end` gets each ended job once, and must not wait. Jobs that were waiting in
        the store keep waiting; without a store, jobs end with the engine. The `gate`
        has the rules of a teacher's class.
        """
        self._on_end = on_end
        self._history = History(store or Store.temporary(""))
        # For each lane of `ask`, how many calls run at once, in all and per person. The
        # lab worker has four threads, so slow uploads still leave some for questions.
        self._questions = {
            "question": Questions(4, 2),
            "upload": Questions(2, 1),
            "code": Questions(2, 1),
        }
        # A thread that needs both locks takes `_dispatching` first.
        self._dispatching = threading.Lock()
        self._lock = threading.RLock()  # guards the five fields below
        self._jobs = Jobs(self._history.record)
        self._queue = Queue()
        self._controls: dict[str, Control] = {}  # by the id of a running job
        self._spreads = OrderedDict[str, float]()  # by the id of an ended job
        self._stops: dict[str, Outcome] = {}  # how running jobs that must stop will end
        self.admission = Admission(gate)
        self._machine: Machine | None = None
        self._machine_due = 0.0  # when to ask for the machine's description again
        self._connection = Connection(
            scheduler,
            on_event=self._jobs.receive,
            on_end=self._when_ended,
            on_lost=self._when_worker_died,
            on_check=self._when_checked,
        )
        self.hosts = self._connection.hosts
        person = self.admission.gate.person
        waiting = [
            (replace(job, person=person(job.owner)), turn)
            for job, turn in self._history.recover()
        ]
        for job in (*self._history.interrupted(), *(job for job, _ in waiting)):
            self._jobs.add(job)
        self._queue.restore(waiting)
        # A restart changes neither what pages say of two runs nor what is expected.
        for ended, ago in self._history.lately():
            self._learn(ended, ago)
        self._leaving = self._closed = False
        # Events have a thread of their own, so that jobs are stored even if no page
        # shows them, and pages only read.
        self._filing = threading.Thread(
            target=self._file_events, args=(self._jobs,), daemon=True
        )
        self._filing.start()
        self._connection.open()

    def submit(
        self,
        address: str,
        *arguments: Any,
        lane: str = "train",
        owner: str = "",
        network: str = "",
    ) -> str:
        """Queue a call of the function at `address`; returns the job's id.

        When this returns, the job is in the database, or `Store.problem` says why not.
        Raises ExplainedError if the job is not admitted. In a full queue, a job of the
        `network` that has the most may have to give way, see Admission.gives_way.
        """
        todo, person = work(address, arguments), self.admission.gate.person(owner)
        job_id = uuid.uuid4().hex[:10]
        job = Job(job_id, address, arguments, lane, owner, work=todo, person=person)
        job = replace(job, network=network)
        with self._lock:
            self.admission.check(job, self._queue)
            if other := self.admission.gives_way(job, self._queue):
                self._end(other.id, Outcome("cancelled", message=gave_way()))
            self._jobs.add(job)
            # With the lock, so that the job's row is written before its events.
            write = self._history.queue(job, self._queue.add(job))
        self._history.wait(write)
        self._dispatch()
        return job_id

    def expected_seconds(self, address: str, *arguments: Any) -> float | None:
        """How long a call took lately, in seconds; None if none like it has ended."""
        job = Job("", address, arguments, "train", work=work(address, arguments))
        with self._lock:
            return self.admission.estimates.seconds(job)

    def spread(self, job: Job) -> float:
        """How much the time of such jobs varied until it ended: 1 if not at all.

        It is kept, since what a page says of two runs may not change afterwards.
        """
        with self._lock:
            return self._spreads.get(job.id) or self.admission.estimates.spread(job)

    def job(self, job_id: str) -> Job | None:
        """The job as it stands now; None if it is unknown. Raises StoreError."""
        with self._lock:
            job = self._current(job_id)
        return job or self._history.job(job_id)

    def _current(self, job_id: str) -> Job | None:
        """A job in memory, and why it doesn't go on; call this with the lock."""
        job = self._jobs.get(job_id)
        if job is None or job.ended:
            return job
        message, _ = self._connection.obstacle(job)
        if job.status == "running":
            return replace(job, message=message) if message else job
        return replace(job, message=message, place=self._queue.place(job.id))

    def jobs(self, address: str | None = None, owner: str | None = None) -> list[Job]:
        """Jobs that wait or run, and the newest ended jobs; the oldest job is first."""
        with self._lock:
            jobs = [self._current(job_id) for job_id in self._jobs.ids(address, owner)]
        return [job for job in jobs if job is not None]

    def going_on(self, owner: str | None = None) -> list[Job]:
        return [job for job in self.jobs(owner=owner) if not job.ended]

    def wait(self, job_id: str) -> float | None:
        """Estimated seconds until a job's turn; None without an estimate."""
        with self._lock:
            place, job = self._queue.place(job_id), self._jobs.get(job_id)
            if job is None or not place:
                return None
            before = self._queue.waiting(job.lane)[: place - 1]
            if job.host or any(earlier.host for earlier in before):
                return None  # a job waits for a machine that may be busy
            at_work = self._at_work(job.lane)
            return self.admission.estimates.until_turn(at_work, before)

    def _at_work(self, lane: str) -> list[Job]:
        """The jobs that a lane's workers have now; call this with the lock."""
        jobs = (self._jobs.get(job.id) for job in self._queue.at_work(lane))
        return [job for job in jobs if job is not None]

    def is_idle(self, but: str = "") -> bool:
        with self._lock:
            return all(job.id == but for job in self._queue.jobs())

    def read(self, stored: Stored) -> bytes:
        """A run's checkpoint. Raises ExplainedError if it is gone or can't be read."""
        return self._history.checkpoint(stored)

    def cancel(self, job_id: str, why: str = "") -> None:
        """End a job, within one batch if it runs; `why` is a sentence for its owner."""
        self._stop(job_id, Outcome("cancelled", message=why))

    def _stop(self, job_id: str, outcome: Outcome) -> None:
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return
            if job.status == "running":
                self._stops.setdefault(job_id, outcome)
                return self._connection.cancel(job_id)
            # A worker that is still starting wouldn't hear that it has to cancel.
            self._connection.withdraw(job_id)
            self._end(job_id, outcome)
        self._dispatch()

    def control(self, job_id: str) -> Control:
        with self._lock:
            return self._controls.get(job_id, NO_CONTROL)

    def steer(self, job_id: str, owner: str, **control: Any) -> None:
        """Tell a running job what its owner wants: fields of Control.

        Nothing changes for somebody else's job, or if the job isn't running. Raises
        ExplainedError if a class's rules forbid it.
        """
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.status != "running" or job.owner != owner:
                return
            before = self.control(job_id)
            newest = replace(before, number=before.number + 1, **control)
            self.admission.gate.steer(owner, Control(**control))
            self._controls[job_id] = newest
        self._connection.steer(job_id, newest)

    @property
    def paused(self) -> bool:
        """Whether a teacher has paused the queue: meanwhile, no training starts."""
        return self.admission.gate.paused

    def clear(self, why: str = "") -> int:
        """Cancel the jobs that wait to train; returns how many. Owners read `why`."""
        with self._lock:
            waiting = self._queue.waiting(TRAIN_LANE)
            for job in waiting:
                self._end(job.id, Outcome("cancelled", message=why))
        return len(waiting)

    def forget(self, owner: str, only: Collection[str] | None = None) -> None:
        """End an owner's jobs, all or `only` some, and drop them from memory.

        Call this before the jobs' rows are deleted, and again afterward, since a page
        may have read the rows meanwhile.
        """
        with self._lock:
            job_ids = self._jobs.ids(owner=owner)
        if only is not None:
            job_ids = [job_id for job_id in job_ids if job_id in only]
        for job_id in job_ids:
            self.cancel(job_id)
        with self._lock:
            for job_id in job_ids:
                self._jobs.remove(job_id)
        self._history.forget(owner, *job_ids)

    def _end(self, job_id: str, outcome: Outcome) -> None:
        """End a job; call this with the lock. Ending a job again changes nothing."""
        self._queue.remove(job_id)  # even if the job was forgotten
        self._controls.pop(job_id, None)
        stop = self._stops.pop(job_id, None)
        job = self._jobs.get(job_id)
        if job is None or job.ended:
            return
        is_overdue = stop and stop.status == "failed" and outcome.status != "finished"
        if stop and (is_overdue or outcome.status == "cancelled"):
            outcome = stop
        ended = self._jobs.end(job_id, outcome)
        # The time of a job that was paused says nothing about similar jobs.
        if not ended.progress.pause and (is_overdue or ended.status == "finished"):
            self._learn(ended)
        self._history.end(ended, outcome.value)
        try:
            self._on_end(ended)
        except Exception:  # an error of `on_end`, not of the job
            logger.exception("the end of job %s could not be recorded", job_id)

    def _learn(self, ended: Job, ago: float = 0.0) -> None:
        """Take in how long a job took that ended so many seconds ago."""
        self.admission.estimates.learn(ended, ago)
        self._spreads[ended.id] = self.admission.estimates.spread(ended)
        if len(self._spreads) > MOST_SPREADS:
            self._spreads.popitem(last=False)

    def ask(
        self,
        address: str,
        *arguments: Any,
        seconds: float = 30.0,
        owner: str = "",
        lane: str = "question",
        sender: str = "",
        since: float = 0.0,
        on_turn: Callable[[], object] | None = None,
    ) -> Any:
        """Call a quick function on the lab worker, and return its answer.

        A stranger's files take the lane "upload", and a visitor's code takes the lane
        "code". The owner's turn must come within `seconds`, and then the answer within
        as many again. Turns go to members of an open class first, and then to network
        addresses (`sender`) one after the other. Owners wait longer while their cookie
        is new; `since` is when they got it, by time.monotonic. `on_turn` is called when
        the turn has come. Raises ExplainedError if the turn or the answer is late, if
        the function raises it, or if the owner has too many questions open.
        """
        person = self.admission.gate.person(owner)
        asker = Asker(owner, person, sender, since)
        with self._questions[lane].turn(asker, seconds):
            if on_turn is not None:
                on_turn()
            return self._connection.ask(address, self._unpacked(arguments), seconds)

    def ahead(self, owner: str, lane: str) -> int:
        """How many questions in the lane come before the owner's next one."""
        return self._questions[lane].ahead(owner, self.admission.gate.person(owner))

    def _unpacked(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Insert the bytes of checkpoints, since workers can't reach the database."""
        return tuple(self.read(a) if isinstance(a, Stored) else a for a in arguments)

    @property
    def problem(self) -> str:
        """Why there are no workers, in a sentence; "" if there are."""
        return self._connection.problem

    def lanes(self) -> Counter[str] | None:
        """How many jobs workers take at once, by lane; None without a scheduler."""
        return self.hosts.answering() if self._connection.is_up else None

    def machine(self) -> Machine | None:
        """The newest description of this machine; None while the workers start."""
        with self._lock:
            if self._connection.is_up and time.monotonic() > self._machine_due:
                self._machine_due = math.inf  # until `_describe_machine` ends
                in_background(self._describe_machine)
        return self._machine

    def _describe_machine(self) -> None:
        try:
            machine = self.ask("core.devices:describe", seconds=LAB_SECONDS)
            status = self.ask("core.data.datasets:status")
            self._machine = replace(machine, fashion_mnist=status)
        except ExplainedError as error:
            logger.warning("could not get the machine's description: %s", error)
        finally:
            self._machine_due = time.monotonic() + MACHINE_SECONDS
        self._dispatch()  # there may be more workers now, or a connection again

    def close(self) -> None:
        """Leave the cluster, and file what it has reported until now.

        The jobs in progress don't end here: as after a kill, the next start finds them
        in the database, and marks them as interrupted.
        """
        with self._lock:
            self._leaving = True
        self._connection.close()
        self._closed = True
        self._jobs.stop_waiting()
        self._filing.join(CLOSE_SECONDS)

    def _file_events(self, jobs: Jobs) -> None:
        while not self._closed:
            jobs.wait_for_events()
            with self._lock:
                jobs.file_events()

    def _dispatch(self) -> None:
        if not (self._queue and self._connection.is_up):
            return
        try:
            with self._dispatching:
                while job := self._next():
                    self._hand_out(job)
        except Exception:  # the connection broke; the jobs wait until it is back
            logger.warning("jobs have to wait", exc_info=True)

    def _next(self) -> Job | None:
        with self._lock:
            capacity = Counter(self.hosts.capacity)
            capacity["lab"] //= 2  # the rest of the lab is for quick questions
            paused = (TRAIN_LANE,) if self.paused else ()
            hosts = {job.id: host_of(job.worker) for job in self._at_work(TRAIN_LANE)}
            return self._queue.next(capacity, paused, hosts)

    def _hand_out(self, job: Job) -> None:
        try:
            # Without the lock: a slow database must not hold up the pages.
            arguments = self._unpacked(job.arguments)
        except ExplainedError as error:
            with self._lock:
                self._end(job.id, Outcome("failed", message=str(error)))
            return
        with self._lock:
            if self._queue.place(job.id):  # it wasn't canceled meanwhile
                self._connection.hand_out(replace(job, arguments=arguments))
                self._queue.take(job)
                self._jobs.start(job.id)

    def _when_ended(self, job_id: str, outcome: Outcome) -> None:
        with self._lock:
            self._end(job_id, outcome)
        self._dispatch()

    def _when_worker_died(self, job_id: str, reason: str) -> None:
        """Fail the job of the worker, or let it wait again if it had not begun."""
        with self._lock:
            if self._leaving:  # it isn't the worker that is at fault, see `close`
                return
            job = self._jobs.get(job_id)
            if job is None:  # it was forgotten
                self._queue.remove(job_id)
            elif job.status == "starting" and job.tries < TRIES:
                self._queue.put_back(job_id)
                self._jobs.put_back(job_id)
            else:
                self._end(job_id, Outcome("failed", message=reason))
        self._dispatch()

    def _when_checked(self) -> None:
        """Stop jobs that take too long or get no worker, and hand out others.

        This happens about once a second.
        """
        for job in self.going_on():
            self._end_in_vain(job.id)
            most = self.admission.seconds(job.owner)
            began = job.began if job.status == "running" else None
            is_overdue = began is not None and time.monotonic() - began > most
            if is_overdue and job.id not in self._stops:
                self._stop(job.id, Outcome("failed", message=overdue(most)))
        if self._machine is None:
            self.machine()
        self.hosts()  # so that new machines are described before a page asks
        self._dispatch()

    def _end_in_vain(self, job_id: str) -> None:
        """Fail a job that has waited in vain for a worker."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.status not in ("queued", "starting"):
                return
            message, is_vain = self._connection.obstacle(job)
            if is_vain:
                self._connection.withdraw(job_id)
                self._end(job_id, Outcome("failed", message=message))
