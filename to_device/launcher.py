"""Serves the app from any folder: `to-device`, and a tile in JupyterLab."""

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_INSTALLED = Path(__file__).with_name("app")  # where a wheel has the app
APP = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[1]


def prepare() -> None:
    """Make the app's modules importable, here and in the processes that it starts.

    An installed app keeps its data in the user's own folder; that of a checkout keeps
    them in the checkout. Raises ModuleNotFoundError without the extra "app".
    """
    if APP == _INSTALLED:
        import platformdirs

        folder = platformdirs.user_data_dir("to-device", appauthor=False)
        os.environ.setdefault("DATA_DIR", folder)
    if str(APP) not in sys.path:
        sys.path.insert(0, str(APP))


def main(arguments: Sequence[str]) -> int:
    """Serve the app with options of `streamlit run`, such as --server.port 8600.

    This is `python app.py`. Raises ModuleNotFoundError without the extra "app".
    """
    sys.argv = [str(APP / "app.py"), *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


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
            *(sys.executable, "-m", "to_device", "app"),
            *(f"--server.{name}={value}" for name, value in options.items()),
        ],
        # Others who have accounts on the machine can reach this port directly.
        "environment": {"RUN_CODE": os.environ.get("RUN_CODE", "off")},
        "absolute_url": True,
        "timeout": 60,
        "launcher_entry": {"title": "to(device)"},
    }
