"""The command `to-device`: the app from any folder, with data in the user's own."""

import os
import sys
from pathlib import Path
from typing import Any

import platformdirs

APP = Path(__file__).with_name("app.py")


def main() -> None:
    """Serve the app with arguments of `streamlit run`, such as --server.port 8600."""
    # Training processes look for the folder, and for the lessons' code, here too.
    os.environ.setdefault("DATA_DIR", platformdirs.user_data_dir("to-device", False))
    from streamlit.web import cli

    cli.main(["run", str(APP), *sys.argv[1:]], prog_name="to-device")


def jupyter() -> dict[str, Any]:
    """A tile in JupyterLab's launcher, through jupyter-server-proxy."""
    options = {
        "port": "{port}",
        "baseUrlPath": "{base_url}to-device",
        "address": "127.0.0.1",
        "headless": "true",
    }
    return {
        "command": [
            *(sys.executable, "-c", "from to_device.launcher import main; main()"),
            *(f"--server.{name}={value}" for name, value in options.items()),
        ],
        "absolute_url": True,
        "timeout": 60,
        "launcher_entry": {"title": "to(device)"},
    }
