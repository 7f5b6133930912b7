"""A Postgres server for tests, on a socket in a folder of its own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

TOOLS = Path("/usr/lib/postgresql")  # where Debian has it
USER = "postgres"  # the server refuses to be root


def tool(name: str) -> str | None:
    """The path of a tool of the newest version, if Postgres is installed."""
    paths = sorted(TOOLS.glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    return str(paths[-1]) if paths else shutil.which(name)


class Postgres:
    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        quick = ["--no-sync", "--auth=trust", f"--username={USER}", "--encoding=UTF8"]
        self._run("initdb", "-D", str(self.data), *quick)

    def url(self, database: str) -> str:
        return f"postgres://{USER}@/{database}?host={self.folder}"

    def empty_database(self, name: str) -> str:
        """The address of that database, emptied: a new one would take half a second."""
        where = f"host={self.folder} user={USER} dbname="
        with psycopg.connect(f"{where}postgres", autocommit=True) as connection:
            names = connection.execute("SELECT datname FROM pg_database").fetchall()
            if (name,) not in names:
                connection.execute(f"CREATE DATABASE {name}".encode())
        with psycopg.connect(f"{where}{name}", autocommit=True) as connection:
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return self.url(name)

    def start(self) -> None:
        # No port is open; what is lost when the machine fails is no matter here.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self._run(
            "pg_ctl", "-D", str(self.data), "-l", log, "-o", options, "-w", "start"
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "stop")

    def _run(self, name: str, *arguments: str) -> None:
        path = tool(name)
        assert path is not None
        as_user = ["runuser", "-u", USER, "--"] if os.geteuid() == 0 else []
        command = [*as_user, path, *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,  # which the server would keep open
            stderr=subprocess.PIPE if name == "initdb" else subprocess.DEVNULL,
            timeout=60,
        )
        assert done.returncode == 0, (command, done.stderr)


@contextmanager
def running() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # a socket's path must be short
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    try:
        server = Postgres(folder)
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
