"""A Dask client and its cluster: hands jobs to workers, and hears from them.

A thread replaces a client that has lost its scheduler. Dask itself would reconnect
without the subscriptions, or close for good. A lost client's jobs end by themselves:
see core.jobs.worker.
"""

import logging
import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from distributed import Client, Future
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker
from distributed.utils import LoopRunner

from core.jobs import cluster, steady_clock, worker
from core.jobs.hosts import TELL_SECONDS, Hosts
from core.jobs.job import Job, Outcome, PickedUp, host_resource
from core.watch import Control
from to_device.errors import ExplainedError, quoted
from to_device.words import Words

logger = logging.getLogger(__name__)
# Dask logs a traceback for each connection that ends, even if it was closed on purpose.
logging.getLogger("distributed").setLevel(logging.ERROR)

CONNECT_SECONDS = 8.0
CHECK_SECONDS = 1.0  # between two checks of the connection and the workers
ANSWER_SECONDS = 30.0  # a scheduler that is silent for longer counts as gone
# What hangs in the app's own cluster is replaced after this time. Heartbeats come twice
# a second from a thread that only waits for the interpreter's lock, which a training
# step holds for milliseconds; so even on a loaded machine, they come in seconds. Only
# what also does nothing is replaced: see core.jobs.hung.
REPLACE_SECONDS = 15.0
# What is silent, but busy, is replaced only after this time. Nothing that the app calls
# holds the interpreter's lock for as long: torch loads in about 15 s on a slow disk.
BUSY_SECONDS = 60.0
RETRY_SECONDS = 5.0  # between two tries to start or reach a missing cluster
CANCEL_SECONDS = 30.0  # if a canceled job runs on for longer, its worker is killed
HOUR = 3600.0
NO_WORKER_SECONDS = 90.0  # a job fails if there is no worker for it for this long

words = Words(__file__)


def in_background(work: Callable[..., object], *arguments: Any) -> None:
    threading.Thread(target=work, args=arguments, daemon=True).start()


def _close(client: Client) -> None:
    """Close a client within two seconds, or at least mark it as closed.

    Otherwise, Dask would try for a long time to close the client when Python collects
    it as garbage.
    """
    with suppress(Exception):
        client.close(timeout=2)
    client.status = "closed"


def _mend_fetches(client: Client) -> None:
    """Let a client fetch results again if a canceled fetch is in the others' way.

    Results that are asked for together share one fetch, which takes itself out of
    `_gather_future` before it ends. If it is canceled before its first step, it stays
    there, and whoever asks later gets its cancellation.
    """
    fetch = client._gather_future
    if fetch is not None and fetch.done():
        logger.warning("a canceled fetch of results was removed")
        client._gather_future = None


class Connection:
    """The connection to an existing scheduler, or to a local cluster that it starts.

    Any thread may call the methods. Callers may hold a lock, unless `on_event` takes
    the same lock: `on_event` runs on the client's event loop, which must not wait.
    """

    def __init__(
        self,
        scheduler: str | None,
        on_event: Callable[[str, Any], None],
        on_end: Callable[[str, Outcome], None],
        on_lost: Callable[[str, str], None],
        on_check: Callable[[], None],
    ) -> None:
        """Prepare the connection; `open` makes it.

        The first three functions get a job's id: `on_event` with what the job reports,
        `on_end` with how the job ended, and `on_lost` with a sentence that says why no
        worker has the job anymore. `on_check` is called after each check of the
        connection and the workers.
        """
        self._scheduler = scheduler or os.environ.get("DASK_SCHEDULER_ADDRESS")
        self._security = cluster.security(self._scheduler)
        self._on_event, self._on_end = on_event, on_end
        self._on_lost, self._on_check = on_lost, on_check
        texts = words.table("elsewhere") if self._scheduler else words.table("own")
        self._lost, self._no_worker = texts["lost"], texts["no_worker"]
        self._topic = f"engine-{uuid.uuid4().hex}"
        self._lock = threading.Lock()  # guards the four fields below
        self._client: Client | None = None
        self._futures: dict[str, Future] = {}  # by job id
        self._begun: set[str] = set()  # jobs that a worker has begun
        self._kill_times: dict[str, float] = {}  # when to kill a canceled job's worker
        self._shared: set[str] = set()  # jobs at a worker that has another app's jobs
        # Workers stuck on an abandoned task that ignores cancellation, and since when.
        self._stuck: dict[str, float] = {}
        self._comm: object = None  # the client's comm; a new comm means a reconnection
        self._cluster: cluster.Process | None = None  # the app's own cluster, if any
        self.hosts = Hosts()
        # All clients share this event loop. If each had its own, and one failed, the
        # thread of its loop would never end.
        self._loop = LoopRunner()
        self._problem = ""  # why there is no connection, in a sentence
        # Workers that the app has tried to replace, and when to try again.
        self._replaced: dict[str, float] = {}
        self._up = threading.Event()
        self._closed = threading.Event()

    def open(self) -> None:
        """Connect, and look after the connection, in the background."""
        steady_clock.use()
        self._loop.start()
        in_background(self._maintain)

    def close(self) -> None:
        self._closed.set()
        if self._client is not None:
            _close(self._client)
        if self._cluster is not None:
            self._cluster.close()

    def _maintain(self) -> None:
        while not self._closed.is_set():
            try:
                client = self._client
                if client is not None and (
                    client.status != "running"
                    or client.scheduler_comm is not self._comm
                    or (self._cluster is not None and self._cluster.has_ended)
                ):
                    self._drop(client)
                if self._client is None:
                    self._connect()
                if self._client is not None:
                    _mend_fetches(self._client)
                    self._check(self._client)
                self._on_check()
            except Exception as error:  # the scheduler went away during the check
                if not self._closed.is_set():
                    logger.warning("could not inspect the workers: %r", error)
            self._closed.wait(RETRY_SECONDS if self._problem else CHECK_SECONDS)
        self.close()  # again: this thread may have connected after close() was called
        self._loop.stop()

    def _drop(self, client: Client) -> None:
        """Give up a broken client, whose jobs are lost."""
        with self._lock:
            self._client, self._problem = None, words("workers.away")
            lost = list(self._futures)
            for job_id in lost:
                self._forget(job_id)
            self._up.clear()
        in_background(_close, client)
        for job_id in lost:
            self._on_lost(job_id, self._lost)

    def _connect(self) -> None:
        try:
            address, tls = self._scheduler, self._security
            if address is None:
                if self._cluster is None or self._cluster.has_ended:
                    self._cluster = cluster.Process()
                address, tls = self._cluster.address, self._cluster.security
            client = Client(
                address,
                timeout=CONNECT_SECONDS,
                security=tls,
                set_as_default=False,
                loop=self._loop.loop,
            )
            client.subscribe_topic(self._topic, self._receive)
            self.hosts.security = tls
            self._comm = client.scheduler_comm
            self.hosts.clear()
            self._client, self._problem = client, ""
        except Exception as error:
            where = f" at {self._scheduler}" if self._scheduler else ""
            self._problem = f"The workers{where} can't be reached: {error}."
            logger.warning("there is no cluster: %s", error)
            own = self._cluster
            if own is not None and not own.has_ended and own.hangs:
                own.kill()
        self._up.set()

    def _check(self, client: Client) -> None:
        """Learn which workers there are; kill those that keep jobs from going on."""
        try:
            # `client.scheduler_info` isn't enough: the client sometimes shortens it.
            scheduler = self._answer(client, "identity", n_workers=-1)
            self.hosts.update(scheduler["workers"])
            now = time.monotonic()
            with self._lock:
                waiting = {
                    job_id: future.key
                    for job_id, future in self._futures.items()
                    if job_id not in self._begun
                }
                stubborn = [j for j, limit in self._kill_times.items() if now > limit]
            tasks = self._tasks(client) if waiting else {}
        except TimeoutError:
            return self._when_silent(client)
        self._replace_silent(client)
        others: set[Any] = set()  # other apps' tasks, which keep workers busy
        stuck: dict[str, float] = {}
        for address, keys in tasks.items():
            if set(keys) - set(client.futures):
                others.update(keys)
            elif keys and set(keys) <= set(waiting.values()):
                stuck[address] = self._stuck.get(address, now)
        self._shared = {job_id for job_id, key in waiting.items() if key in others}
        self._stuck = stuck
        for address, since in stuck.items():
            if now > since + CANCEL_SECONDS:
                stuck[address] = now  # give the new worker time to start
                in_background(self._kill, client, address)
        for job_id in stubborn:
            in_background(self._end_with_worker, job_id, client)

    def _when_silent(self, client: Client) -> None:
        """Give up a scheduler that doesn't answer; end it if it is the app's own."""
        own = self._cluster
        if own is not None:
            if self.hosts.silence < BUSY_SECONDS and not own.hangs:
                return  # it is busy: ask again
            logger.warning("the scheduler does not respond and will be replaced")
            own.kill()
        self._drop(client)

    def _replace_silent(self, client: Client) -> None:
        """Replace workers of the app's own cluster that hang."""
        if self._cluster is None:
            return
        now = time.monotonic()
        tried = {a: due for a, due in self._replaced.items() if now < due + HOUR}
        for address in self.hosts.silent(REPLACE_SECONDS):
            if now > tried.get(address, 0.0):
                tried[address] = now + RETRY_SECONDS
                in_background(self._replace, client, address)
        self._replaced = tried

    def _replace(self, client: Client, address: str) -> None:
        if address in self.hosts.silent(BUSY_SECONDS):
            return self._kill(client, address)
        killed = client.run(
            worker.kill_if_hung, workers=[address], nanny=True, on_error="ignore"
        )
        if any(killed.values()):
            logger.warning("the worker at %s hung and was killed", address)

    @property
    def problem(self) -> str:
        """Why there are no workers, in a sentence; "" if there are."""
        if self._problem:
            return self._problem
        if self._cluster is not None and self._cluster.problem:
            return self._cluster.problem
        is_silent = self._client is not None and self.hosts.silence >= TELL_SECONDS
        return words("workers.silent_scheduler") if is_silent else ""

    @property
    def is_up(self) -> bool:
        return self._client is not None

    def _tasks(self, client: Client) -> dict[str, list[str]]:
        """For the address of each worker, the keys of the tasks that the worker has."""
        return self._answer(client, "processing", workers=None)

    def _answer(self, client: Client, question: str, **arguments: Any) -> Any:
        """The scheduler's answer. Raises TimeoutError if the scheduler is silent."""
        call = getattr(client.scheduler, question)
        seconds = ANSWER_SECONDS if self._scheduler else REPLACE_SECONDS
        return client.sync(call, callback_timeout=seconds, **arguments)

    def obstacle(self, job: Job) -> tuple[str, bool]:
        """Why the job doesn't go on (or ""), and whether it should fail."""
        if job.status == "running":
            if not (self.is_up and self.hosts.is_silent(job.worker)):
                return "", False
            if self._scheduler:
                return words("workers.silent_elsewhere"), False
            return words("workers.silent"), False
        if job.status == "starting":
            waited = time.monotonic() - (job.began or time.monotonic())
            without = max(map(self.hosts.seconds_without, job.resources))
            if min(waited, without) > NO_WORKER_SECONDS:
                return self._no_worker, True
            is_shared = job.id in self._shared
            return words("workers.shared") if is_shared else "", False
        if (
            not (job.host and self.is_up)
            or self.hosts.capacity[host_resource(job.host)]
        ):
            return "", False
        waited = time.monotonic() - job.arrived
        without = self.hosts.seconds_without(host_resource(job.host))
        if min(waited, without) > NO_WORKER_SECONDS:
            return (
                f"The machine {quoted(job.host)} has no workers. Choose "
                "another machine, or Any, and start the run again.",
                True,
            )
        return words("workers.host_away", host=quoted(job.host)), False

    def hand_out(self, job: Job) -> None:
        """Give a job to a worker. Raises ExplainedError if not connected."""
        with self._lock:
            if self._client is None:
                raise ExplainedError(words("workers.away"))
            future = self._client.submit(
                worker.do,
                job.id,
                self._topic,
                job.address,
                job.arguments,
                resources=dict.fromkeys(job.resources, 1),
                pure=False,
            )
            self._futures[job.id] = future
        # All clients of a process share one thread for callbacks, which must not wait.
        when_done = partial(in_background, self._when_done, job.id)
        future.add_done_callback(when_done)

    def _when_done(self, job_id: str, future: Future) -> None:
        outcome, reason = None, ""
        try:
            outcome = future.result(timeout=ANSWER_SECONDS)
        except Exception as error:
            reason = self._reason(error)
        with self._lock:
            if self._futures.get(job_id) is not future:  # withdrawn, or already lost
                return
            self._forget(job_id)
        future.release()
        if outcome is not None:
            self._on_end(job_id, outcome)
        else:
            logger.warning("lost: %s", reason, extra={"run": job_id})
            self._on_lost(job_id, reason)

    def _reason(self, error: Exception) -> str:
        """Why a task has no result: its worker died, or the connection broke."""
        if isinstance(error, OSError) and not isinstance(error, CommClosedError):
            logger.warning("a result could not be fetched: %s", error)
            return words("workers.unfetched")
        if not isinstance(error, KilledWorker):
            return self._lost
        is_replaced = error.last_worker.address in self._replaced
        if is_replaced:
            return words("workers.replaced")
        return words("workers.lost_worker")

    def _forget(self, job_id: str) -> Future | None:
        """Drop a job and return its future; call this with the lock."""
        self._kill_times.pop(job_id, None)
        self._begun.discard(job_id)
        self._shared.discard(job_id)
        return self._futures.pop(job_id, None)

    def cancel(self, job_id: str) -> None:
        """Ask a running job to end; if it doesn't, its worker will be killed."""
        with self._lock:
            if job_id not in self._futures:
                return
            self._kill_times.setdefault(job_id, time.monotonic() + CANCEL_SECONDS)
        self._tell(worker.cancel, job_id)

    def steer(self, job_id: str, control: Control) -> None:
        self._tell(worker.steer, job_id, control)

    def _tell(self, message: Callable[..., None], *arguments: Any) -> None:
        if self._client is not None:
            # All workers get the message, since the scheduler may not know yet which
            # of them has the job.
            run = partial(self._client.run, on_error="ignore")
            in_background(run, message, *arguments)

    def _end_with_worker(self, job_id: str, client: Client) -> None:
        with self._lock:
            future = self._forget(job_id)
        if future is None:
            return
        for address, keys in self._tasks(client).items():
            if future.key in keys:
                self._kill(client, address)
        future.cancel()
        self._on_end(job_id, Outcome("cancelled"))

    def _kill(self, client: Client, address: str) -> None:
        """End a worker and its tasks; the worker's nanny starts another."""
        logger.warning("the worker at %s is not responding and will be killed", address)
        client.run(worker.kill, workers=[address], nanny=True, on_error="ignore")

    def withdraw(self, job_id: str) -> None:
        with self._lock:
            future = self._forget(job_id)
        if future is not None:
            in_background(future.cancel)

    def ask(self, address: str, arguments: tuple[Any, ...], seconds: float) -> Any:
        """Call a function on the lab worker, and return its answer.

        Raises ExplainedError if the function does, or if no answer comes in time.
        """
        deadline = time.monotonic() + seconds
        self._up.wait(seconds)
        client = self._client
        if client is None:
            raise ExplainedError(words("workers.away"))
        future = None
        try:
            future = client.submit(
                worker.answer, address, arguments, resources={"lab": 1}, pure=False
            )
            outcome = self._answer_of(future, deadline)
        except ExplainedError:
            raise
        except TimeoutError:
            too_late = (
                f"The worker did not answer within {seconds:.0f} seconds. Try "
                "again: it may still be starting or may be busy with other "
                "work."
            )
            raise ExplainedError(too_late) from None
        except Exception as error:
            raise ExplainedError(self._reason(error)) from None
        finally:
            if future is not None:
                future.release()
        return outcome.get()

    def _answer_of(self, future: Future, deadline: float) -> Outcome:
        """Wait for the lab's answer, but not if the lab worker has stopped responding.

        Raises TimeoutError at the deadline, a time of time.monotonic().
        """
        # Nobody asks for the result before it is there: to end the wait, Dask would
        # cancel its fetch, and a client whose fetch is canceled at its start can't
        # fetch anything afterwards.
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        while not done.wait(min(CHECK_SECONDS, max(0.1, deadline - time.monotonic()))):
            if time.monotonic() > deadline:
                raise TimeoutError
            if self.hosts.all_silent("lab"):
                raise ExplainedError(words("questions.silent"))
        return future.result(timeout=ANSWER_SECONDS)

    def _receive(self, event: tuple[float, bytes]) -> None:
        """Runs on the client's event loop, so it must not wait, not even for a lock.

        Only who has the cluster's key can send an event, and is trusted with this
        process: see core.jobs.worker.
        """
        job_id, report = pickle.loads(event[1])
        if isinstance(report, PickedUp):
            self._begun.add(job_id)
        self._on_event(job_id, report)
