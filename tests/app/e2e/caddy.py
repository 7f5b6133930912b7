"""Debian's Caddy in front of the app."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.jobs.cluster import ROOT
from tests.app.jobs.follow import wait
from tools.server import free_port

needed = pytest.mark.skipif(
    shutil.which("caddy") is None and os.environ.get("CI") != "true",
    reason="no Caddy here",
)


@contextmanager
def running(config: Path, folder: Path, **settings: str) -> Iterator[None]:
    """Caddy with this file, which may read these settings from its environment."""
    log, ports = folder / "caddy.log", {"ADMIN": "off", "HTTP_PORT": str(free_port())}
    with log.open("w") as output:
        caddy = subprocess.Popen(
            ["caddy", "run", "--config", config],
            cwd=ROOT,
            env={**os.environ, **ports, "HOME": str(folder), **settings},
            stderr=output,
        )

    # Caddy makes its own certificates while it already answers, without them.
    certificates = config.read_text().count("tls internal")

    def is_up() -> bool:
        said = log.read_text()
        assert caddy.poll() is None, said
        made = said.count("certificate obtained successfully")
        return "serving initial configuration" in said and made >= certificates

    try:
        wait(is_up)
        yield
    finally:
        caddy.terminate()
        caddy.wait(60)
