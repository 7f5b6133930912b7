"""The installed app: `pipx install .`, then `to-device` from anywhere."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import requests
import torch

from tests import event_loop
from tests.process import ROOT
from tools.load.record import Record
from tools.load.tab import Browser, Tab
from tools.server import free_port

pytestmark = pytest.mark.slow

COMMAND = "from to_device.launcher import main; main()"


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


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has installed it, with this one's libraries."""
    packages, home = tmp_path / "packages", tmp_path / "home"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps"]
    subprocess.run([*pip, "--target", packages, ROOT, "platformdirs"], check=True)
    own = {name: each for name, each in os.environ.items() if name != "DATABASE_URL"}
    return own | {
        "PYTHONPATH": str(packages),
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "MEASURE_WHEN_IDLE": "0",
    }


def test_it_runs_from_another_folder_and_keeps_its_data_with_the_user(
    installed, tmp_path
):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    port = free_port()
    options = ["--server.headless", "true", "--server.port", str(port)]
    command = [sys.executable, "-c", COMMAND, *options]
    app = subprocess.Popen(command, cwd=folder, env=installed)
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
    data = tmp_path / "home" / "data" / "to-device"
    assert {"to-device.sqlite", "cookie.key"} <= {each.name for each in data.iterdir()}
    assert list(folder.iterdir()) == []
    package = tmp_path / "packages" / "to_device"
    assert not (package / "data").exists()
    assert {each.name for each in package.glob("*.toml")} == {
        each.name for each in ROOT.glob("*.toml") if each.name != "pyproject.toml"
    }


def test_the_tile_in_jupyterlab_starts_a_server_below_the_hubs_path(installed):
    tile = "from to_device.launcher import jupyter as j; print(*j()['command'][3:])"
    said = subprocess.check_output([sys.executable, "-c", tile], env=installed)
    assert said.decode().split() == [
        "--server.port={port}",
        "--server.baseUrlPath={base_url}to-device",
        "--server.address=127.0.0.1",
        "--server.headless=true",
    ]


def test_the_installer_asks_for_the_driver_that_this_torch_needs():
    if torch.version.cuda is None:
        pytest.skip("this torch has no CUDA")
    oldest = {"12": 525, "13": 580}[torch.version.cuda.partition(".")[0]]
    script = (ROOT / "deploy" / "install").read_text("utf-8")
    assert f"\ndriver_needed={oldest} " in script
