"""The wheel, installed away from this checkout: the toolkit alone, and with the app."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pytest
import requests
import torch

from tests.app import event_loop
from tests.process import ROOT
from to_device import launcher
from tools.load.record import Record
from tools.load.tab import Browser, Tab
from tools.server import free_port

pytestmark = pytest.mark.slow

SCRIPT = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(4, 2).to(device)
print(model(torch.ones(3, 4)))
"""
MOVED = SCRIPT.replace("torch.ones(3, 4)", "torch.ones(3, 4, device=device)")
MEMORY = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"


def is_healthy(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=10).ok
    except requests.RequestException:
        return False


def read(url: str, pages: tuple[str, ...]) -> None:
    """Open the pages; Trouble where one shows an error."""

    async def look() -> None:
        for page in pages:
            tab = Tab(Browser(url), Record())
            await tab.open(page)
            tab.check()
            await tab.close()

    event_loop.run(look())


class Environment:
    """An empty virtual environment with the wheel, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "environment" / "bin"
        self.folder = folder / "elsewhere"
        self.folder.mkdir()
        self.variables = {
            name: value
            for name, value in os.environ.items()
            if name not in ("DATABASE_URL", "PYTHONPATH", "DATA_DIR")
        }
        self.variables |= {
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "MEASURE_WHEN_IDLE": "0",
        }
        wheels = folder / "wheels"
        pip = [sys.executable, "-m", "pip", "-q"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", wheels, ROOT], check=True)
        subprocess.run([sys.executable, "-m", "venv", self.bin.parent], check=True)
        pip = [self.bin / "python", "-m", "pip", "-q"]
        (wheel,) = wheels.iterdir()
        subprocess.run([*pip, "install", "--no-index", wheel], check=True)

    def add_libraries(self) -> None:
        """Make this environment's own libraries importable, as if installed."""
        (packages,) = self.bin.parent.glob("lib/python*/site-packages")
        (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))

    def run(self, *arguments: str, text: str = "", status: int = 0) -> str:
        """What the command prints. AssertionError for another exit status."""
        done = self._done(*arguments, text=text, status=status)
        return done.stdout + done.stderr

    def report(self, *arguments: str, text: str = "", status: int = 0) -> Any:
        """What the command prints with --json."""
        done = self._done(*arguments, "--json", text=text, status=status)
        return json.loads(done.stdout)

    def _done(
        self, *arguments: str, text: str, status: int
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.bin / "to-device", *arguments],
            cwd=self.folder,
            env=self.variables,
            input=text,
            capture_output=True,
            text=True,
            timeout=180,
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("full"))
    environment.add_libraries()
    return environment


def test_without_torch_errors_and_reports_are_explained(bare):
    assert "memory" in bare.run("explain", text=MEMORY)
    assert bare.run("--version").startswith("to-device ")
    assert "dryrun" in bare.run("--help")
    assert "collect_env" in bare.run("diagnose", "--help")
    report = "PyTorch version: 2.15.0+cpu\nOS: Debian GNU/Linux 12\n"
    assert bare.report("diagnose", "-", text=report, status=1)


@pytest.mark.parametrize(
    ("arguments", "package"),
    [
        (["diagnose"], "torch"),
        (["dryrun", "train.py"], "torch"),
        (["run"], ".[app]"),
        (["bench"], ".[app]"),
        (["store", "upgrade"], ".[app]"),
        ([], ".[app]"),
    ],
)
def test_a_missing_package_is_named_in_a_sentence(bare, arguments, package):
    assert f"pip install {package}" in bare.run(*arguments, status=2).replace('"', "")


def test_a_script_a_module_a_notebook_and_a_pipe_are_tried(full):
    package = full.folder / "package"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "device.py").write_text("name = 'cuda'\n")
    (package / "train.py").write_text("from .device import name\n" + SCRIPT)
    (full.folder / "train.py").write_text(SCRIPT)
    cell = {"cell_type": "code", "source": [SCRIPT]}
    (full.folder / "train.ipynb").write_text(json.dumps({"cells": [cell]}))
    for name, line in (("train.py", 5), ("train.ipynb", 5), ("package.train", 6)):
        arguments = ["-m", name] if name == "package.train" else [name]
        report = full.report("dryrun", *arguments, status=1)
        assert report["failure"]["line"]["line"] == line
    assert full.report("dryrun", "-", text=MOVED)["status"] == 0
    assert "nothere" in full.run("dryrun", "-m", "nothere.train", status=2)
    assert "CPU" in full.run("diagnose", status=1)


def test_the_app_runs_from_another_folder_and_keeps_its_data_with_the_user(full):
    before, port = {*full.folder.iterdir()}, free_port()
    options = ["--server.headless", "true", "--server.port", str(port)]
    app = subprocess.Popen(
        [full.bin / "to-device", *options], cwd=full.folder, env=full.variables
    )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 120
    try:
        while not is_healthy(url):
            assert app.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
        read(url, ("Device", "Train", "Speed", "Mistakes"))
    finally:
        app.terminate()
        app.wait(60)
    data = full.folder.parent / "data" / "to-device"
    assert {"to-device.sqlite", "cookie.key"} <= {each.name for each in data.iterdir()}
    assert {*full.folder.iterdir()} == before


def test_a_run_of_the_course_needs_no_checkout(full):
    settings = ["--task", "regression", "--epochs", "1", "--json"]
    assert '"loss"' in full.run("run", *settings)
    assert "to-device.sqlite" in full.run("store", "upgrade")


def test_the_tile_in_jupyterlab_starts_a_server_below_the_hubs_path(full):
    tile = "from to_device.launcher import jupyter as j; print(*j()['command'][3:])"
    said = subprocess.check_output([full.bin / "python", "-c", tile])
    assert said.decode().split() == [
        "app",
        "--server.port={port}",
        "--server.baseUrlPath={base_url}to-device",
        "--server.address=127.0.0.1",
        "--server.headless=true",
    ]


def test_an_app_in_jupyterlab_runs_no_code_unless_its_host_says_so(monkeypatch):
    monkeypatch.delenv("RUN_CODE", raising=False)
    assert launcher.jupyter()["environment"] == {"RUN_CODE": "off"}
    monkeypatch.setenv("RUN_CODE", "confined")
    assert launcher.jupyter()["environment"] == {"RUN_CODE": "confined"}


def test_the_installer_asks_for_the_driver_that_this_torch_needs():
    if torch.version.cuda is None:
        pytest.skip("this torch has no CUDA")
    oldest = {"12": 525, "13": 580}[torch.version.cuda.partition(".")[0]]
    script = (ROOT / "deploy" / "install").read_text("utf-8")
    assert f"\ndriver_needed={oldest} " in script


def test_root_makes_nothing_where_the_app_could_have_put_a_link():
    """The app's user owns that folder, and its links may lead anywhere."""
    script = (ROOT / "deploy" / "install").read_text("utf-8")
    makes = re.compile(r"\b(install|cat|cp|mv|ln|touch|mkdir|tee|chown|chmod)\b")
    lines = [line for line in script.splitlines() if '"$own' in line]
    made = [line for line in lines if makes.search(line)]
    assert made
    assert all(" as_app " in f" {line}" for line in made), made


def test_the_installer_reaches_for_systemd_only_where_it_runs():
    script = (ROOT / "deploy" / "install").read_text("utf-8")
    before, _, _ = script.partition("\n[ -d /run/systemd/system ] ||")
    commands = re.findall(r"^.*\bsystemctl .*$", before, re.M)
    needing = [c for c in commands if re.search(r"--now|systemctl (re)?st(art|op)", c)]
    assert all("/run/systemd/system" in command for command in needing), needing
