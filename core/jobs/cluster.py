"""The Dask cluster: all of it for one server, or its parts for several machines.

    python -m core.jobs.cluster

starts a scheduler and its workers on the loopback interface, prints nothing but the
scheduler's address, a certificate, and its key on standard output, and ends when its
standard input closes. So nothing outlives a server that is killed.

    python -m core.jobs.cluster scheduler
    python -m core.jobs.cluster workers ADDRESS

run until somebody ends them, whatever happens to the other processes and to the apps.
They need a folder of certificates, made by deploy/certificates.

Whoever reaches the port of a scheduler or worker can run code there. So each connection
is TLS, and needs a key: one of your certificates, or the key that the server's own
cluster makes when it starts. No port is open to more interfaces than it has to be.
"""

import argparse
import asyncio
import json
import logging
import math
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dask
from distributed import Nanny, Scheduler, Security
from distributed.comm import get_address_host
from distributed.core import connect

from core import log
from core.config import A_NAME, is_name
from core.folders import ROOT, private
from core.jobs import hung, steady_clock
from core.jobs.job import host_resource
from to_device.errors import ExplainedError
from to_device.words import Words

LAB_THREADS = 4  # how many questions and short jobs the lab worker takes at once
RETRY_SECONDS = 1.0  # between two tries of a worker to reach its scheduler
START_SECONDS = 5.0  # between two tries to start a worker of the app's own cluster
LOOK_SECONDS = 1.0  # between two looks at whether the scheduler has lost a worker
# A worker of the app's own cluster that its scheduler has lost should end and start
# again by itself. One that lives on for longer is replaced.
LOST_SECONDS = 45.0
LOAD_SECONDS = 300.0  # for a new process, which loads torch before it joins
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
    # Dask's web pages ask for no certificate, so there are none.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
# Which variables are secrets: those with one of these words in their name.
SECRETS = {"PASSWORD", "PGPASSWORD", "SECRET", "TOKEN", "KEY", "DATABASE"}
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


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that a process may see in which other people's work runs."""
    return {
        name: value
        for name, value in environment.items()
        # Dask's own settings name files with keys, as DASK_CERTIFICATES does.
        if name.startswith("DASK_") or not SECRETS & set(name.upper().split("_"))
    }


def listening(host: str, port: int, tls: Security) -> Scheduler:
    no_pages: dict[str, Any] = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return Scheduler(host=host, port=port, security=tls, **no_pages)


def security(address: str | None = None, folder: str | None = None) -> Security:
    """The TLS settings of a scheduler, or those to reach the scheduler at an address.

    The default folder is DASK_CERTIFICATES; without a folder, Dask's own settings
    apply. Raises ExplainedError if the address isn't one for TLS, or if certificates
    are missing or can't be used.
    """
    folder = folder or os.environ.get("DASK_CERTIFICATES")
    settings = _tls(folder) if folder else Security()
    if address and not address.startswith("tls://"):
        raise ExplainedError(
            "The scheduler's address must begin with tls://, but "
            f"{address} does not. Without TLS, anyone who can reach the "
            "port could run code. deploy/certificates makes the "
            "certificates for TLS."
        )
    if address and not settings.get_tls_config_for_role("client")["ca_file"]:
        raise ExplainedError(
            f"The scheduler at {address} asks for a certificate. Set "
            "DASK_CERTIFICATES to the folder with this machine's "
            "certificates, which are created by deploy/certificates."
        )
    return settings


def temporary() -> Security:
    """A new key, and a certificate that is its own authority, both only in memory.

    Dask's `Security.temporary` makes such a pair, too. But its certificate is good only
    from now on and for a year: if somebody set the clock back, no worker could join.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "to(device)")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(1970, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(9999, 1, 1, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    text = certificate.public_bytes(pem).decode()
    pkcs8 = serialization.PrivateFormat.PKCS8
    return for_all_roles(text, text, key.private_bytes(pem, pkcs8, plain).decode())


def for_all_roles(authority: str, certificate: str, key: str) -> Security:
    """The settings of processes that share a certificate, as PEM or as files' paths."""
    roles = ("scheduler", "worker", "client")
    return Security(
        require_encryption=True,
        tls_ca_file=authority,
        **{f"tls_{role}_cert": certificate for role in roles},
        **{f"tls_{role}_key": key for role in roles},
    )


def _tls(folder: str) -> Security:
    authority, certificate, key = (Path(folder, f).absolute() for f in CERTIFICATES)
    for file in (authority, certificate, key):
        if not os.access(file, os.R_OK):
            raise ExplainedError(
                f"{file} is missing or can't be read. deploy/certificates "
                "makes a folder with ca.pem, cert.pem, key.pem for each "
                "machine."
            )
    if os.name == "posix" and key.stat().st_mode & 0o077:
        raise ExplainedError(
            f"Other users of this machine can read the key {key}. If you "
            f"are sure that nobody has read the key, run chmod 600 {key}. "
            "Otherwise, make new certificates."
        )
    settings = for_all_roles(str(authority), str(certificate), str(key))
    try:
        settings.get_connection_args("client")
    except OSError as error:  # includes ssl's errors
        message = (
            f"The certificates in {folder} can't be used: {error}. "
            "deploy/certificates makes new certificates."
        )
        raise ExplainedError(message) from None
    return settings


class Process:
    def __init__(self) -> None:
        """Start the cluster. Raises ExplainedError if it ends before it is ready.

        The cluster sends its address and its key through a pipe that nobody else has.
        """
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.jobs.cluster"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=without_secrets(os.environ) | {LOGGING: "{'distributed': 'error'}"},
            # Ctrl-C in the terminal must not reach the cluster: the server ends it.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ExplainedError(
                "python -m core.jobs.cluster exited before it was ready"
            )
        self.address, certificate, key = json.loads(line)
        self.security = for_all_roles(certificate, certificate, key)
        self._problems: dict[str, str] = {}  # by the name of the worker
        listen = threading.Thread(
            target=self._listen, args=(self._process.stdout,), daemon=True
        )
        listen.start()

    def _listen(self, lines: Iterable[str]) -> None:
        with suppress(ValueError):  # the file was closed
            for line in lines:
                name, _, self._problems[name] = line.strip("\n").partition("\t")

    @property
    def problem(self) -> str:
        """A sentence on why a worker can't start; "" if all could."""
        return next(filter(None, self._problems.copy().values()), "")

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def hangs(self) -> bool:
        """Whether the scheduler, which should answer, does nothing; takes a second."""
        return hung.hangs(self._process.pid)

    def kill(self) -> None:
        """End a cluster that hangs, with its workers."""
        hung.kill(self._process.pid)
        self._process.wait(10)

    def close(self) -> None:
        """End the cluster by closing its input, or by force if that does not help."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()


async def local() -> None:
    # What workers print goes to standard error. The address and the key go to a copy of
    # standard output that they don't inherit.
    tls = temporary()
    address_output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    async with listening("127.0.0.1", 0, tls) as scheduler:

        def tell(line: str) -> None:
            with suppress(BrokenPipeError):  # the server may have ended
                print(line, file=address_output, flush=True)

        own = tls.get_tls_config_for_role("client")
        tell(json.dumps((scheduler.address, own["cert"], own["key"])))
        here: dict[str, Any] = {"host": "127.0.0.1", "security": tls}
        nannies: dict[str, Nanny] = {}

        async def keep(name: str, options: dict) -> None:
            """Keep a worker running, and tell the server why it can't start."""
            while True:
                nanny = Nanny(scheduler.address, name=name, **here, **options)
                nannies[name] = nanny
                replacing = replace_lost(
                    scheduler, nanny, lambda why: tell(f"{name}\t{why}")
                )
                watching = asyncio.ensure_future(replacing)
                try:
                    await nanny.start()
                    tell(f"{name}\t")
                    await nanny.finished()
                except Exception as error:
                    tell(f"{name}\t{no_start(error)}")
                finally:
                    watching.cancel()
                await asyncio.sleep(START_SECONDS)

        starting = [
            asyncio.ensure_future(keep(name, options))
            for name, options in workers().items()
        ]
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
        for start in starting:
            start.cancel()
        closing = (nanny.close(timeout=1) for nanny in nannies.values())
        await asyncio.gather(*closing, return_exceptions=True)
    for child in multiprocessing.active_children():  # workers that were just starting
        child.kill()
    os._exit(0)  # doesn't wait for threads


async def replace_lost(
    scheduler: Scheduler, nanny: Nanny, tell: Callable[[str], None]
) -> None:
    """Kill a worker's process that lives, but that the scheduler doesn't have.

    A worker that loses its connection closes. On a machine with too much to do, it may
    fail halfway: then its process never ends, and so its nanny never starts another.
    `tell` gets a sentence meanwhile, and "" when the scheduler has the worker again.
    """
    pid, due, is_told = nanny.pid, time.monotonic() + LOAD_SECONDS, False
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = time.monotonic()
        if nanny.pid != pid:
            pid, due = nanny.pid, now + LOAD_SECONDS
        elif pid in {worker.pid for worker in scheduler.workers.values()}:
            due = math.inf
            if is_told:
                tell("")
                is_told = False
        elif due == math.inf:  # counts from this look: the machine may have slept
            due, is_told = now + LOST_SECONDS, True
            tell(words("workers.silent_scheduler"))
        elif pid and now >= due:
            logger.warning("the scheduler lacks the worker %s: killing it", nanny.name)
            hung.kill(pid)
            due = now + LOST_SECONDS


def no_start(error: BaseException) -> str:
    """A sentence, in one line, on why a worker can't start."""
    while error.__cause__ is not None:
        error = error.__cause__
    try:
        multiprocessing.get_context("spawn").Lock()
    except OSError as why:
        return (
            "The workers can't start, since Python can't create "
            f"semaphores here: {why}. On Linux, it needs /dev/shm to be "
            "writable, with some space left. The app tries again every "
            "few seconds."
        )
    text = " ".join(str(error).split()).rstrip(".")
    return (
        "The workers can't start: {why}. The server's log says more. "
        "The app tries again every few seconds."
    ).format(why=f"{type(error).__name__}: {text}")


async def schedule(host: str, port: int, tls: Security) -> None:
    async with listening(host, port, tls) as scheduler:
        print(f"The scheduler is listening at {scheduler.address}", flush=True)
        await scheduler.finished()


async def work(
    address: str, host: str | None, lanes: list[str], name: str, tls: Security
) -> None:
    running = []
    for kind, options in workers().items():
        resources = options["resources"]
        if set(resources) & set(lanes):
            if "train" in resources:  # so that jobs can ask for this machine
                options["resources"] = resources | {host_resource(name): 1}
            options |= {"host": host, "security": tls}
            running.append(keep_running(address, f"{name}-{kind}", options))
    await asyncio.gather(*running)


async def keep_running(address: str, name: str, options: dict) -> None:
    """Run one worker, and start it again whenever its scheduler is back.

    Unless the options name a host, the worker and its nanny listen only on the
    interface from which this machine reaches the scheduler: the loopback interface if
    both are on the same machine. By default, Dask's workers listen on all interfaces.

    A worker and its nanny, the process that watches over it, end when they lose their
    connection. But a worker that hangs wouldn't notice the loss, so this function
    watches a connection of its own.
    """
    arguments = options["security"].get_connection_args("worker")
    while True:
        try:
            comm = await connect(address, **arguments)
            host = options["host"] or get_address_host(comm.local_address)
            async with Nanny(address, name=name, **options | {"host": host}) as nanny:
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
    for each in (for_scheduler, for_workers):
        each.add_argument(
            "--certificates",
            metavar="FOLDER",
            help="folder with this machine's certificates from deploy/certificates "
            "(default: DASK_CERTIFICATES)",
        )
    for_scheduler.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 lets other machines join (default: only "
        "this machine)",
    )
    for_workers.add_argument(
        "--host",
        help="address to listen on (default: that of the interface that reaches the "
        "scheduler)",
    )
    for_scheduler.add_argument("--port", type=int, default=8786)  # Dask's default
    for_workers.add_argument(
        "address",
        help="the scheduler's address: tls://HOST:PORT",
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
    # The processes that this one starts inherit what is left.
    left = without_secrets(os.environ)
    for secret in os.environ.keys() - left.keys():
        del os.environ[secret]
    # Both would take folders that another user may have made first, in /tmp. Dask puts
    # its own in front of sys.path, and torch runs code that it finds compiled.
    dask.config.set(SETTINGS | {"temporary-directory": str(private("dask"))})
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(private("torchinductor")))
    steady_clock.use()
    log.set_up()
    logging.getLogger("distributed.scheduler").addFilter(is_news)
    try:
        run = command(options)
    except ExplainedError as error:
        sys.exit(str(error))
    with suppress(KeyboardInterrupt):
        asyncio.run(run)


def command(options: argparse.Namespace) -> Coroutine[Any, Any, None]:
    """What to run. Raises ExplainedError if it has no certificate that it needs."""
    if options.command == "scheduler":
        tls = security(None, options.certificates)
        if not tls.require_encryption:
            raise ExplainedError(words("certificates.scheduler"))
        return schedule(options.host, options.port, tls)
    if options.command == "workers":
        tls = security(options.address, options.certificates)
        return work(options.address, options.host, options.lanes, options.name, tls)
    return local()


def machine_name(text: str) -> str:
    if text and is_name(text):
        return text
    raise argparse.ArgumentTypeError(f"this must be {A_NAME}, not {text!r}")


if __name__ == "__main__":
    main()
