"""The Dask cluster: all of it for one server, or its parts for several machines.

    python -m core.jobs.cluster

starts a scheduler and its workers on the loopback interface, prints nothing but the
scheduler's address on standard output, and ends when its standard input closes. So
nothing outlives a server that is killed.

    python -m core.jobs.cluster scheduler
    python -m core.jobs.cluster workers ADDRESS

run until somebody ends them, whatever happens to the other processes and to the apps.
With a folder of certificates, made by deploy/certificates, they all use only TLS.
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
from typing import Any

import dask
from distributed import Nanny, Scheduler, Security
from distributed.core import connect

from core import log
from core.config import A_NAME, is_name
from core.folders import ROOT
from core.jobs import steady_clock
from core.jobs.job import on
from to_device.errors import ExplainedError
from to_device.words import Words

LAB_THREADS = 4  # how many questions and short jobs the lab worker takes at once
RETRY_SECONDS = 1.0  # between two tries of a worker to reach its scheduler
CERTIFICATES = ("ca.pem", "cert.pem", "key.pem")
# How Dask's log messages about a lost connection and about a call of /metrics begin.
NO_NEWS = (
    "Closed comm",
    "Failed to communicate with scheduler during heartbeat",
    "Run out-of-band function",
)
LOGGING = "DASK_DISTRIBUTED__LOGGING"  # environment variable: each logger's level
SETTINGS = {
    # A run whose worker dies has failed: the run must not silently start again.
    "distributed.scheduler.allowed-failures": 0,
    # Dask's default would set one OpenMP thread, but core.devices chooses the number.
    # Until core.jobs.worker sets up logging, log only warnings.
    "distributed.nanny.pre-spawn-environ": {
        LOGGING: "{'distributed.preloading': 'warning'}"
    },
    # A daemonic process can't start children, such as the workers of a DataLoader.
    "distributed.worker.daemon": False,
    # Otherwise, Dask would pause or kill workers that use much of the memory.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 1000,
    "distributed.scheduler.work-stealing": False,
    "distributed.comm.timeouts.connect": "10s",
}
words = Words(__file__)
logger = logging.getLogger(__name__)


def gpus() -> list[str]:
    """The NVIDIA GPUs to use, named as in CUDA_VISIBLE_DEVICES."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name for name in visible.split(",") if name]
    with suppress(OSError, subprocess.TimeoutExpired):
        tool = ["nvidia-smi", "-L"]
        listing = subprocess.run(tool, capture_output=True, text=True, timeout=10)
        lines = listing.stdout.splitlines()
        return [str(n) for n in range(sum(line.startswith("GPU ") for line in lines))]
    return []


def workers() -> dict[str, dict]:
    """The workers' options, keyed by name: "train-0" and so on for GPUs, and "lab"."""

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
    """Log filter: drops messages about disconnected clients, and about /metrics."""
    return not record.getMessage().startswith(NO_NEWS)


def listening(host: str, port: int, tls: Security) -> Scheduler:
    no_pages: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return Scheduler(host=host, port=port, security=tls, **no_pages)


def security(address: str | None = None, folder: str | None = None) -> Security:
    """The TLS settings of a scheduler, or those to reach the scheduler at an address.

    The default folder is DASK_CERTIFICATES; without a folder, Dask's own settings
    apply. Raises ExplainedError if the address doesn't fit the certificates, or if the
    certificates can't be used.
    """
    folder = folder or os.environ.get("DASK_CERTIFICATES")
    settings = _tls(folder) if folder else Security()
    is_tls = address and address.startswith("tls://")
    if address and settings.require_encryption and not is_tls:
        raise ExplainedError(words("certificates.no_tls", address=address))
    if is_tls and not settings.get_tls_config_for_role("client")["ca_file"]:
        raise ExplainedError(words("certificates.needed", address=address))
    return settings


def _tls(folder: str) -> Security:
    authority, certificate, key = (Path(folder, f).absolute() for f in CERTIFICATES)
    for file in (authority, certificate, key):
        if not os.access(file, os.R_OK):
            raise ExplainedError(words("certificates.missing", file=file))
    if os.name == "posix" and key.stat().st_mode & 0o077:
        raise ExplainedError(words("certificates.open", file=key))
    roles = ("scheduler", "worker", "client")
    settings = Security(
        require_encryption=True,
        tls_ca_file=str(authority),
        **{f"tls_{role}_cert": str(certificate) for role in roles},
        **{f"tls_{role}_key": str(key) for role in roles},
    )
    try:
        settings.get_connection_args("client")
    except OSError as error:  # includes ssl's errors
        message = words("certificates.bad", folder=folder, error=error)
        raise ExplainedError(message) from None
    return settings


class Process:
    def __init__(self) -> None:
        """Start the cluster. Raises ExplainedError if it ends before it is ready."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.jobs.cluster"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, LOGGING: "{'distributed': 'error'}"},
            # Ctrl-C in the terminal must not reach the cluster: the server ends it.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address:
            raise ExplainedError(
                "python -m core.jobs.cluster exited before it was ready"
            )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End the cluster by closing its input, or by force if that does not help."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


async def local(tls: Security) -> None:
    # What workers print goes to standard error. The address goes to a copy of standard
    # output that they don't inherit.
    address_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    async with listening("127.0.0.1", 0, tls) as scheduler:
        with suppress(BrokenPipeError), address_output:  # the server may have ended
            print(scheduler.address, file=address_output)
        here: dict[str, Any] = {"host": "127.0.0.1", "security": tls}
        nannies = [
            Nanny(scheduler.address, name=name, **here, **options)
            for name, options in workers().items()
        ]
        starting = [asyncio.ensure_future(nanny.start()) for nanny in nannies]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        for start in starting:
            start.cancel()
        closing = (nanny.close(timeout=1) for nanny in nannies)
        await asyncio.gather(*closing, return_exceptions=True)
    for child in multiprocessing.active_children():  # workers that were just starting
        child.kill()
    os._exit(0)  # doesn't wait for threads


async def schedule(host: str, port: int, tls: Security) -> None:
    async with listening(host, port, tls) as scheduler:
        print(f"The scheduler is listening at {scheduler.address}", flush=True)
        await scheduler.finished()


async def work(address: str, lanes: list[str], name: str, tls: Security) -> None:
    running = []
    for kind, options in workers().items():
        resources = options["resources"]
        if set(resources) & set(lanes):
            if "train" in resources:  # so that jobs can ask for this machine
                options["resources"] = resources | {on(name): 1}
            options["security"] = tls
            running.append(keep_running(address, f"{name}-{kind}", options))
    await asyncio.gather(*running)


async def keep_running(address: str, name: str, options: dict) -> None:
    """Run one worker, and start it again whenever its scheduler is back.

    A worker and its nanny, the process that watches over it, end when they lose their
    connection. But a worker that hangs wouldn't notice the loss, so this function
    watches a connection of its own.
    """
    arguments = options["security"].get_connection_args("worker")
    while True:
        try:
            comm = await connect(address, **arguments)
            async with Nanny(address, name=name, **options) as nanny:
                lost = asyncio.ensure_future(comm.read())
                ended = asyncio.ensure_future(nanny.finished())
                await asyncio.wait({lost, ended}, return_when="FIRST_COMPLETED")
        except Exception as error:  # no scheduler, or another worker has the name
            logger.warning("%s can't work for %s: %s", name, address, error)
        await asyncio.sleep(RETRY_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m core.jobs.cluster",
        description="Start a scheduler and workers. They stop when stdin closes.",
    )
    commands = parser.add_subparsers(dest="command")
    for_scheduler = commands.add_parser("scheduler", help="start only a scheduler")
    for_workers = commands.add_parser(
        "workers", help="start only this machine's workers"
    )
    for command in (parser, for_scheduler, for_workers):
        command.add_argument(
            "--certificates",
            metavar="FOLDER",
            help="folder with this machine's certificates from deploy/certificates; "
            "turns on TLS (default: DASK_CERTIFICATES)",
        )
    for_scheduler.add_argument(
        "--host",
        help="interface to listen on (default: loopback, or all interfaces if "
        "you use certificates)",
    )
    for_scheduler.add_argument("--port", type=int, default=8786)  # Dask's default
    for_workers.add_argument(
        "address",
        help="the scheduler's address: tcp://HOST:PORT, or tls:// with certificates",
    )
    for_workers.add_argument(
        "--lanes",
        nargs="+",
        choices=("train", "lab"),
        default=["train", "lab"],
        help="train: one worker for each GPU; lab: one worker for quick questions",
    )
    for_workers.add_argument(
        "--name",
        type=machine_name,
        default=socket.gethostname(),
        help="the first part of each worker's name (default: this machine's name)",
    )
    options = parser.parse_args()
    dask.config.set(SETTINGS)
    steady_clock.use()
    log.set_up()
    logging.getLogger("distributed.scheduler").addFilter(is_news)
    try:
        tls = security(getattr(options, "address", None), options.certificates)
    except ExplainedError as error:
        sys.exit(str(error))
    with suppress(KeyboardInterrupt):
        if options.command == "scheduler":
            # Listen on all interfaces only if clients have to show a certificate.
            own = "0.0.0.0" if tls.require_encryption else "127.0.0.1"
            asyncio.run(schedule(options.host or own, options.port, tls))
        elif options.command == "workers":
            asyncio.run(work(options.address, options.lanes, options.name, tls))
        else:
            asyncio.run(local(tls))


def machine_name(text: str) -> str:
    if text and is_name(text):
        return text
    raise argparse.ArgumentTypeError(f"this must be {A_NAME}, not {text!r}")


if __name__ == "__main__":
    main()
