"""The Dask cluster: all of it for one server, or its parts for several machines.

    python -m core.jobs.cluster

starts a scheduler and its workers on the loopback interface, prints the scheduler's
address as its one line on standard output, and ends when its standard input closes. So
whoever started it need not stop it: nothing outlives a server that is killed.

    python -m core.jobs.cluster scheduler
    python -m core.jobs.cluster workers ADDRESS

run until they are ended, whatever happens to each other and to the apps. With a folder
of certificates all of them speak TLS only, see core.jobs.certificates.
"""

import argparse
import asyncio
import logging
import multiprocessing
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import dask
from distributed import Nanny, Scheduler, Security
from distributed.core import connect

from core import log
from core.config import A_NAME, is_name
from core.errors import ExplainedError
from core.jobs.certificates import security as secured
from core.jobs.job import on

ROOT = Path(__file__).parents[2]

LAB_THREADS = 4  # short jobs of several people at once
PORT = 8786  # where Dask's own scheduler listens too
AGAIN_SECONDS = 1.0  # until workers whose scheduler is away look for it again

logger = logging.getLogger(__name__)

GONE = ("Closed comm", "Failed to communicate with scheduler during heartbeat")
ASKED = "Run out-of-band function"  # for each scrape of /metrics

LOGGING = "DASK_DISTRIBUTED__LOGGING"  # levels by logger, in an environment variable

SETTINGS = {
    # A run whose worker dies has failed; it must not silently run a second time.
    "distributed.scheduler.allowed-failures": 0,
    # By default each worker gets one OpenMP thread; core.devices decides that here.
    # What a worker logs before core.jobs.worker sets that up is no news.
    "distributed.nanny.pre-spawn-environ": {
        LOGGING: "{'distributed.preloading': 'warning'}"
    },
    # The DataLoader of a worker may have processes of its own.
    "distributed.worker.daemon": False,
    # Dask would pause or kill a worker by shares of memory that suit other work.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 1000,
    "distributed.scheduler.work-stealing": False,
    "distributed.comm.timeouts.connect": "10s",
}


def gpus() -> list[str]:
    """The NVIDIA GPUs to use, by the names that CUDA_VISIBLE_DEVICES takes."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    with suppress(OSError, subprocess.TimeoutExpired):
        tool = ["nvidia-smi", "-L"]
        listed = subprocess.run(tool, capture_output=True, text=True, timeout=10)
        lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
        return [str(index) for index in range(len(lines))]
    return []


def workers() -> dict[str, dict]:
    """Name and options of each worker: one for training on each device, one lab."""

    def options(resource: str, threads: int, env: dict[str, str]) -> dict:
        return {
            "nthreads": threads,
            "resources": {resource: threads},
            "env": env,
            "memory_limit": None,
            "dashboard_address": "127.0.0.1:0",
            "preload": ["core.jobs.worker"],
        }

    environments = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus()] or [{}]
    train = {f"train-{n}": options("train", 1, e) for n, e in enumerate(environments)}
    return {**train, "lab": options("lab", LAB_THREADS, {})}


def is_news(record: logging.LogRecord) -> bool:
    """Not that somebody has gone who was about to be told something.

    A client has ended, or connects again; or the scheduler has, and its workers with
    it. Dask tells both with a traceback.
    """
    return not record.getMessage().startswith((*GONE, ASKED))


def listening(host: str, port: int, security: Security) -> Scheduler:
    """A scheduler for this interface, without pages of its own."""
    return Scheduler(
        host=host,
        port=port,
        security=security,
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )


class Process:
    """The local cluster as its parent holds it."""

    def __init__(self) -> None:
        """Start it and wait for its address; ExplainedError where none comes."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.jobs.cluster"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, LOGGING: "{'distributed': 'error'}"},
            # Ctrl-C in the terminal is for the server; the cluster ends after it.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address:
            raise ExplainedError("python -m core.jobs.cluster ended before it was up")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End it, by closing what it reads from; by force where that does not help."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


async def local(security: Security) -> None:
    """The cluster of one server, which holds the other end of standard input."""
    # Whatever the workers print goes to standard error. The address goes out through a
    # copy of standard output that none of them inherits.
    address_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    async with listening("127.0.0.1", 0, security) as scheduler:
        with address_output:
            print(scheduler.address, file=address_output)
        nannies = [
            Nanny(
                scheduler.address,
                name=name,
                host="127.0.0.1",
                security=security,
                **options,
            )
            for name, options in workers().items()
        ]
        starting = [asyncio.ensure_future(nanny.start()) for nanny in nannies]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        for start in starting:
            start.cancel()
        closing = (nanny.close(timeout=1) for nanny in nannies)
        await asyncio.gather(*closing, return_exceptions=True)
    for child in multiprocessing.active_children():  # those that were just starting
        child.kill()
    os._exit(0)  # whatever still runs here holds nothing that anybody waits for


async def schedule(host: str, port: int, security: Security) -> None:
    """A scheduler, for as long as it is let."""
    async with listening(host, port, security) as scheduler:
        print(f"The scheduler listens at {scheduler.address}", flush=True)
        await scheduler.finished()


async def work(address: str, lanes: list[str], name: str, security: Security) -> None:
    """The workers of this machine, for as long as they are let."""
    keeping = []
    for number, options in workers().items():
        resources = options["resources"]
        if set(resources) & set(lanes):
            if "train" in resources:  # for jobs that ask for this machine
                options["resources"] = resources | {on(name): 1}
            options["security"] = security
            keeping.append(keep(address, f"{name}-{number}", options))
    await asyncio.gather(*keeping)


async def keep(address: str, name: str, options: dict) -> None:
    """One worker, started again whenever its scheduler is back.

    A worker ends with its connection to the scheduler, and takes its nanny along; one
    that hangs would not even notice. So this holds a connection of its own.
    """
    arguments = options["security"].get_connection_args("worker")
    while True:
        try:
            comm = await connect(address, **arguments)
            async with Nanny(address, name=name, **options) as nanny:
                lost = asyncio.ensure_future(comm.read())
                ended = asyncio.ensure_future(nanny.finished())
                await asyncio.wait({lost, ended}, return_when="FIRST_COMPLETED")
        except Exception as error:  # the scheduler is away, or has another by this name
            logger.warning("%s can't work for %s: %s", name, address, error)
        await asyncio.sleep(AGAIN_SECONDS)


def main() -> None:
    """The command line."""
    given = _given()
    dask.config.set(SETTINGS)
    log.set_up()
    logging.getLogger("distributed.scheduler").addFilter(is_news)
    try:
        security = secured(getattr(given, "address", None), given.certificates)
    except ExplainedError as error:
        sys.exit(str(error))
    with suppress(KeyboardInterrupt):
        if given.command == "scheduler":
            # Where everybody has to show a certificate, everybody may knock.
            everybody = security.require_encryption
            host = given.host or ("0.0.0.0" if everybody else "127.0.0.1")
            asyncio.run(schedule(host, given.port, security))
        elif given.command == "workers":
            asyncio.run(work(given.address, given.lanes, given.name, security))
        else:
            asyncio.run(local(security))


def _given() -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--certificates",
        metavar="FOLDER",
        help="of this machine, from deploy/certificates: it speaks TLS only then; "
        "default: DASK_CERTIFICATES",
    )
    parser = argparse.ArgumentParser(
        prog="python -m core.jobs.cluster",
        description="A scheduler and workers, to end with standard input.",
        parents=[shared],
    )
    commands = parser.add_subparsers(dest="command")
    alone = commands.add_parser("scheduler", help="only a scheduler", parents=[shared])
    alone.add_argument(
        "--host",
        help="the interface it listens on; else this machine's own, or with "
        "certificates all",
    )
    alone.add_argument("--port", type=int, default=PORT)
    hands = commands.add_parser(
        "workers", help="only this machine's workers", parents=[shared]
    )
    hands.add_argument(
        "address",
        help="of the scheduler: tcp://HOST:PORT, with certificates tls://",
    )
    hands.add_argument(
        "--lanes",
        nargs="+",
        choices=("train", "lab"),
        default=["train", "lab"],
        help="train: a worker for each GPU; lab: one for quick questions",
    )
    hands.add_argument(
        "--name",
        type=machine_name,
        default=socket.gethostname(),
        help="what the workers' names begin with",
    )
    return parser.parse_args()


def machine_name(text: str) -> str:
    """The name, if a run can ask for a machine that is called that."""
    if text and is_name(text):
        return text
    raise argparse.ArgumentTypeError(f"it must be {A_NAME}, not {text!r}")


if __name__ == "__main__":
    main()
