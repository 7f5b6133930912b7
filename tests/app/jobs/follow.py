import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import psutil

from core.config import RunConfig
from core.jobs.engine import Engine
from core.jobs.estimates import work
from core.jobs.job import Job
from core.watch import Watch

RUN = "core.training:run"
LONG = RunConfig(task="sprites", epochs=200)  # no test waits for its end
SHORT = RunConfig(task="sprites", epochs=1, batch_size=256)


def wait(condition: Callable[[], object], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def job(*arguments: Any, address: str = RUN, **more: Any) -> Job:
    return Job("a", address, arguments, "train", work=work(address, arguments), **more)


def done(seconds: float, *arguments: Any, status: str = "finished", **more: Any) -> Job:
    return job(*arguments, status=status, seconds=seconds, **more)


def lanes(engine: Engine) -> Counter[str]:
    return engine.lanes() or Counter()


def status(engine: Engine, job_id: str) -> str:
    job = engine.job(job_id)
    assert job is not None
    return job.status


def finish(engine: Engine, job_id: str) -> Job:
    wait(lambda: (job := engine.job(job_id)) is not None and job.ended)
    job = engine.job(job_id)
    assert job is not None
    return job


def running(engine: Engine, job_id: str) -> None:
    wait(lambda: engine.job(job_id).progress.latest)


def train_worker(engine: Engine) -> psutil.Process:
    workers = engine._connection._client.scheduler_info(n_workers=-1)["workers"]
    (address,) = (a for a, w in workers.items() if "train" in w["resources"])
    return psutil.Process(
        engine._connection._client.run(os.getpid, workers=[address])[address]
    )


@dataclass(frozen=True)
class Counted:
    step: int
    lasts: ClassVar[bool] = True


def count(steps: int, watch: Watch) -> int:
    """A job that does nothing but tell how far it is, forty times a second."""
    for step in watch.until_cancelled(range(steps)):
        watch.report(Counted(step))
        time.sleep(0.025)
    return steps
