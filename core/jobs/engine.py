"""Submit, follow and cancel work on a Dask cluster, local or remote.

The web server holds one Engine. It never imports torch: functions are named by their
address ("core.training:run") and looked up in the worker that calls them.

Long jobs wait in a queue of our own, and go to a worker only when one is free. Dask
would take them at once, but fails all jobs that a worker holds when that worker dies,
also those it has not begun with.
"""

import logging
import math
import os
import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Client, Future

from core.errors import ExplainedError
from core.jobs import cluster, worker
from core.jobs.job import Job, Jobs, Outcome
from core.jobs.queue import Queue
from core.measure.environment import Machine

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 8.0  # a scheduler that does not answer by then is not there
LAB_SECONDS = 60.0  # the lab has loaded torch by then, also on a slow machine
MACHINE_SECONDS = 3.0
RETRY_SECONDS = 5.0
NO_WORKER_SECONDS = 90.0  # a job that nobody has picked up by then has failed

LOST_WORKER = (
    "The worker process ended while it was at it: it was killed, or the machine had no "
    "memory left. A new worker is starting; try again, perhaps with a smaller batch."
)
LOST_CLUSTER = (
    "The processes that do the work have ended. They are being started again; "
    "start the run once more."
)
NO_WORKER = (
    "No worker took this job. The server's log says why; "
    "restarting the app starts new workers."
)


def in_background(work: Callable[..., object], *arguments: Any) -> None:
    """Call it in a thread that nobody waits for, not even when the server ends."""
    threading.Thread(target=work, args=arguments, daemon=True).start()


class Engine:
    """The one connection of a web server to its workers; safe to use from threads."""

    def __init__(self, scheduler: str | None = None) -> None:
        """Connect to the Dask scheduler there, or start a local cluster."""
        self._scheduler = scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS")
        self._topic = f"engine-{uuid.uuid4().hex}"
        self._lock = threading.RLock()  # for the three that follow
        self._jobs = Jobs()
        self._queue = Queue()
        self._futures: dict[str, Future] = {}  # of the jobs that workers have
        self._cluster: cluster.Process | None = None  # where it is our own
        self._client: Client | None = None
        self.problem = ""  # why there are no workers, in a sentence; else empty
        self._machine: Machine | None = None
        self._machine_due = 0.0  # when it is to be asked for again
        self._start_due = 0.0  # when a start that failed is to be tried again
        self._closed = False
        self._up = threading.Event()
        self._starting = True
        in_background(self._start)

    # Working with jobs

    def submit(
        self, address: str, *arguments: Any, lane: str = "train", owner: str = ""
    ) -> str:
        """Queue a call of the function at `address`; returns the job's id at once."""
        job = Job(uuid.uuid4().hex[:10], address, arguments, lane, owner)
        with self._lock:
            self._jobs.add(job)
            self._queue.add(job)
        self._revive()
        self._dispatch()
        return job.id

    def job(self, job_id: str) -> Job | None:
        """The job as it stands now; None if this engine does not know it."""
        self._revive()
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return job
            waited = time.time() - (job.started or time.time())
            if job.status == "starting" and waited > NO_WORKER_SECONDS:
                in_background(self._stop, job_id, self._futures.get(job_id))
                self._end(job_id, Outcome("failed", message=NO_WORKER))
                return self._jobs.get(job_id)
            return replace(job, place=self._queue.place(job_id))

    def jobs(self, address: str, owner: str | None = None) -> list[Job]:
        """Jobs that call the function at `address`, of one owner or all, in order."""
        with self._lock:
            ids = self._jobs.of(address, owner)
        return [job for job in map(self.job, ids) if job is not None]

    def cancel(self, job_id: str) -> None:
        """End a job: at once where it waits, within one batch where it runs."""
        with self._lock:
            job = self._jobs.get(job_id)
            if job is None or job.ended:
                return
            if job.status == "queued":
                return self._end(job_id, Outcome("cancelled"))
            future = None
            if job.status == "starting":  # its worker may be starting too, and deaf
                future = self._futures.get(job_id)
                self._end(job_id, Outcome("cancelled"))
        in_background(self._stop, job_id, future)

    def _end(self, job_id: str, outcome: Outcome) -> None:
        """Call it with the lock."""
        self._jobs.end(job_id, outcome)
        self._queue.remove(job_id)
        self._futures.pop(job_id, None)

    def _stop(self, job_id: str, future: Future | None) -> None:
        """Tell all workers, since none may have said yet that it has the job."""
        if self._client is not None:
            self._client.run(worker.cancel, job_id, on_error="ignore")
        if future is not None:
            future.cancel()
            self._dispatch()

    def ask(self, address: str, *arguments: Any, seconds: float = 30.0) -> Any:
        """The answer of a quick function on the lab worker.

        Raises ExplainedError where the function does, or where no answer comes in time.
        """
        deadline = time.monotonic() + seconds
        self._revive()
        self._up.wait(seconds)
        if self._client is None:
            raise ExplainedError(self.problem or NO_WORKER)
        future = self._client.submit(
            worker.answer, address, arguments, resources={"lab": 1}, pure=False
        )
        left = max(0.1, deadline - time.monotonic())
        try:
            outcome: Outcome = future.result(timeout=left)
        except TimeoutError:
            raise ExplainedError(
                f"The worker gave no answer in {seconds:.0f} seconds. Try again; it "
                "may still be starting, or busy with somebody else's question."
            ) from None
        except Exception:  # KilledWorker, or the connection broke
            raise ExplainedError(LOST_WORKER) from None
        finally:
            future.release()
        return outcome.get()

    def machine(self) -> Machine | None:
        """The last that the workers said of this machine; None while they start.

        Asked anew, in the background, once it is stale.
        """
        self._revive()
        with self._lock:
            if self._client is not None and time.monotonic() > self._machine_due:
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
        self._closed = True
        if self._client is not None:
            self._client.close(timeout=2)
        if self._cluster is not None:
            self._cluster.close()

    # Between the engine and the cluster

    def _start(self) -> None:
        try:
            address = self._scheduler
            if address is None:
                self._cluster = cluster.Process()
                address = self._cluster.address
            if self._closed:  # in the meantime, when there was nothing to end yet
                return self.close()
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            client.subscribe_topic(self._topic, self._on_event)
            self._client, self.problem = client, ""
        except Exception as error:
            where = f" at {self._scheduler}" if self._scheduler else ""
            self.problem = f"The workers{where} can't be reached: {error}."
            self._start_due = time.monotonic() + RETRY_SECONDS
            logger.warning("no cluster: %s", error)
        self._starting = False
        self._up.set()
        self.machine()
        self._dispatch()

    def _revive(self) -> None:
        """If the local cluster has died, fail what it was doing and start another.

        A cluster that could not be started or reached is tried again now and then.
        """
        with self._lock:
            died = self._cluster is not None and self._cluster.has_ended
            failed = self._up.is_set() and self._client is None
            due = time.monotonic() > self._start_due
            if self._closed or self._starting or not (due and (died or failed)):
                return
            self._cluster = None
            client, self._client = self._client, None
            self._up.clear()
            for job_id in list(self._futures):
                self._end(job_id, Outcome("failed", message=LOST_CLUSTER))
            self._starting = True
        if client is not None:
            in_background(client.close, 1)
        in_background(self._start)

    def _dispatch(self) -> None:
        """Hand the next jobs of the queue to workers that are free."""
        client = self._client
        if client is None or not self._queue:
            return
        try:
            capacity = self._capacity(client)  # without the lock: it asks the scheduler
            with self._lock:
                if client is self._client:
                    while (job := self._queue.next(capacity)) is not None:
                        self._hand_out(job, client)
        except Exception:  # the connection broke; the jobs wait until it is back
            logger.warning("jobs have to wait", exc_info=True)

    def _hand_out(self, job: Job, client: Client) -> None:
        future = client.submit(
            worker.do,
            job.id,
            self._topic,
            job.address,
            job.arguments,
            resources={job.lane: 1},
            pure=False,
        )
        self._queue.take(job)
        self._jobs.start(job.id)
        self._futures[job.id] = future
        future.add_done_callback(partial(self._when_done, job.id))

    @staticmethod
    def _capacity(client: Client) -> Counter[str]:
        """How many jobs of each lane the workers take at once.

        A worker that is restarting counts for nothing, but Dask keeps a job for it.
        """
        capacity: Counter[str] = Counter()
        for each in client.scheduler_info(n_workers=-1)["workers"].values():
            capacity.update({lane: int(n) for lane, n in each["resources"].items()})
        return capacity

    def _when_done(self, job_id: str, future: Future) -> None:
        try:
            outcome = future.result(timeout=30)
        except Exception as error:  # KilledWorker, or the connection broke
            logger.warning("job %s was lost: %r", job_id, error)
            outcome = Outcome("failed", message=LOST_WORKER)
        with self._lock:
            self._end(job_id, outcome)
        future.release()
        self._dispatch()

    def _on_event(self, event: tuple[float, bytes]) -> None:
        """Runs on the client's event loop, so it must not wait, not for a lock even."""
        self._jobs.receive(*pickle.loads(event[1]))
