"""The way from an engine to its workers: a Dask client, and the cluster behind it.

It knows nothing of queues. It hands a job to a worker and tells, by the three functions
that it is given, what the job reports, how it ended, and that workers have come.
"""

import logging
import os
import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from distributed import Client, Future

from core.errors import ExplainedError
from core.jobs import cluster, worker
from core.jobs.job import Job, Outcome

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 8.0  # a scheduler that does not answer by then is not there
RETRY_SECONDS = 5.0

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


class Connection:
    """To a scheduler that is there, or to a local cluster of its own.

    Safe to use from threads. Whoever holds a lock while calling it must not need that
    lock in `on_event`, which runs on the client's event loop.
    """

    def __init__(
        self,
        scheduler: str | None,
        on_event: Callable[[str, Any], None],
        on_end: Callable[[str, Outcome], None],
        on_up: Callable[[], None],
    ) -> None:
        """`open` connects.

        `on_event` gets the id of a job and what it reports, without waiting; `on_end`
        the id of a job and how it ended. `on_up` is called after every attempt.
        """
        self._scheduler = scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS")
        self._on_event, self._on_end, self._on_up = on_event, on_end, on_up
        self._topic = f"engine-{uuid.uuid4().hex}"
        self._lock = threading.Lock()  # for the three that follow
        self._futures: dict[str, Future] = {}  # of the jobs that workers have
        self._cluster: cluster.Process | None = None  # where it is our own
        self._client: Client | None = None
        self.problem = ""  # why there are no workers, in a sentence; else empty
        self._start_due = 0.0  # when a start that failed is to be tried again
        self._closed = False
        self._up = threading.Event()
        self._starting = True

    def open(self) -> None:
        """Connect, in the background."""
        in_background(self._start)

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def _start(self) -> None:
        try:
            address = self._scheduler
            if address is None:
                self._cluster = cluster.Process()
                address = self._cluster.address
            if self._closed:  # in the meantime, when there was nothing to end yet
                return self.close()
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
            client.subscribe_topic(self._topic, self._receive)
            self._client, self.problem = client, ""
        except Exception as error:
            where = f" at {self._scheduler}" if self._scheduler else ""
            self.problem = f"The workers{where} can't be reached: {error}."
            self._start_due = time.monotonic() + RETRY_SECONDS
            logger.warning("no cluster: %s", error)
        self._starting = False
        self._up.set()
        self._on_up()

    def revive(self) -> None:
        """If the local cluster has died, fail what it was doing and start another.

        A cluster that could not be started or reached is tried again now and then.
        """
        with self._lock:
            died = self._cluster is not None and self._cluster.has_ended
            failed = self._up.is_set() and self._client is None
            due = time.monotonic() > self._start_due
            if self._closed or self._starting or not (due and (died or failed)):
                return
            self._starting = True
            self._cluster = None
            client, self._client = self._client, None
            self._up.clear()
            lost, self._futures = self._futures, {}
        for job_id in lost:
            self._on_end(job_id, Outcome("failed", message=LOST_CLUSTER))
        if client is not None:
            in_background(client.close, 1)
        in_background(self._start)

    def capacity(self) -> Counter[str]:
        """How many jobs of each lane the workers take at once; asks the scheduler.

        A worker that is restarting counts for nothing, but Dask keeps a job for it.
        """
        capacity: Counter[str] = Counter()
        if self._client is not None:
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            for each in workers.values():
                capacity.update({k: int(n) for k, n in each["resources"].items()})
        return capacity

    def hand_out(self, job: Job) -> None:
        """Give the job to a worker of its lane; ExplainedError without connection."""
        client = self._client
        if client is None:
            raise ExplainedError(self.problem or NO_WORKER)
        future = client.submit(
            worker.do,
            job.id,
            self._topic,
            job.address,
            job.arguments,
            resources={job.lane: 1},
            pure=False,
        )
        with self._lock:
            self._futures[job.id] = future
        future.add_done_callback(partial(self._when_done, job.id))

    def _when_done(self, job_id: str, future: Future) -> None:
        try:
            outcome = future.result(timeout=30)
        except Exception as error:  # KilledWorker, or the connection broke
            logger.warning("job %s was lost: %r", job_id, error)
            outcome = Outcome("failed", message=LOST_WORKER)
        with self._lock:
            self._futures.pop(job_id, None)
        future.release()
        self._on_end(job_id, outcome)

    def cancel(self, job_id: str) -> None:
        """Tell all workers, since none may have said yet that it has the job."""
        if self._client is not None:
            self._client.run(worker.cancel, job_id, on_error="ignore")

    def withdraw(self, job_id: str) -> None:
        """Cancel a job that no worker may have begun with."""
        with self._lock:
            future = self._futures.pop(job_id, None)
        self.cancel(job_id)
        if future is not None:
            future.cancel()

    def ask(self, address: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """The answer of a quick function on the lab worker.

        Raises ExplainedError where the function does, or where no answer comes in time.
        """
        deadline = time.monotonic() + seconds
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

    def close(self) -> None:
        """End the connection, and the local cluster with it."""
        self._closed = True
        if self._client is not None:
            self._client.close(timeout=2)
        if self._cluster is not None:
            self._cluster.close()

    def _receive(self, event: tuple[float, bytes]) -> None:
        """Runs on the client's event loop, so it must not wait, not for a lock even."""
        self._on_event(*pickle.loads(event[1]))
