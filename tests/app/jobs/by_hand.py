"""A scheduler and workers in processes of their own, as documents start them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from core.jobs.cluster import ROOT
from tests.process import that_go_on
from tools.server import free_port


def commands(file: str) -> list[str]:
    text = (ROOT / file).read_text("utf-8")
    return re.findall(r"^python -m core\.jobs\.cluster .*", text, re.M)


class Elsewhere:
    def __init__(self, commands: dict[str, str], folder: Path) -> None:
        """The port in the commands is replaced by one that is free."""
        self.port = str(free_port())
        self.address = f"tls://127.0.0.1:{self.port}"
        self._commands, self._folder = commands, folder
        self._processes: dict[str, psutil.Popen] = {}
        for part in commands:
            self.start(part)

    def start(self, part: str) -> None:
        _, *words = shlex.split(self._commands[part].replace("8786", self.port))
        self._processes[part] = psutil.Popen(
            [sys.executable, *words],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
        )

    def leave(self, part: str) -> None:
        """The command itself, as systemd stops it; nobody waits for what it started."""
        self._processes[part].terminate()
        self._processes[part].wait()

    def kill(self, part: str) -> None:
        """The command itself, as kill -9 does; what it had started ends by itself."""
        family = self._processes[part].children(recursive=True)
        self._processes[part].kill()
        self._processes[part].wait()
        assert list(that_go_on(family)) == []

    @contextmanager
    def stopped(self, part: str) -> Iterator[None]:
        self._processes[part].suspend()
        try:
            yield
        finally:
            self._processes[part].resume()

    def end(self) -> None:
        for process in self._processes.values():
            family = [process]
            with suppress(psutil.NoSuchProcess):
                family += process.children(recursive=True)
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.kill()
            psutil.wait_procs(family, timeout=10)
