"""to-device: does this code run on a GPU, what does this error mean, where is my GPU?

    to-device dryrun train.py        would this script run on CUDA? Needs no GPU
    to-device explain error.txt      what does this error mean, and what to write
    to-device diagnose               why doesn't torch use a GPU here?

    to-device                        serve the course on this machine
    to-device run --model cnn        one training run of the course
    to-device bench --quick          the course's measurements on this machine
    to-device store backup FILE      back up, restore, upgrade, and purge its database

Each command has --help. `explain` needs only Python, as does `diagnose` for a report of
another machine. `dryrun`, and `diagnose` for this machine, need torch. The course
needs, in the project's folder: pip install ".[app]"
"""

import importlib
import sys
from collections.abc import Sequence

from to_device.errors import end_with_pipe
from to_device.version import VERSION

TOOLS = {  # commands of the toolkit, and the module that has each one's `main`
    "dryrun": "to_device.dryrun.command",
    "explain": "to_device.explain.explainer",
    "diagnose": "to_device.diagnose.command",
}
APP = {"run": "core.run", "bench": "core.bench", "store": "core.store.__main__"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit status, which is 2 for a command that can't run.

    A module is imported only if its command is used, so `explain` and --help don't
    wait for torch or for Streamlit.
    """
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or ["app"]
    if name in ("-h", "--help"):
        end_with_pipe()
        print((__doc__ or "").strip())
        return 0
    if name == "--version":
        print(f"to-device {VERSION}")
        return 0
    if name.startswith("-"):  # an option of `streamlit run`
        name, rest = "app", [name, *rest]
    if name not in ("app", *TOOLS, *APP):
        known = ", ".join(("app", *APP, *TOOLS))
        print(f"to-device: there is no command {name!r}, only {known}", file=sys.stderr)
        return 2
    try:
        return _run(name, rest)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "to_device", "core"):
            raise
        package = "torch"
        if missing != "torch":
            package = '".[app]" in the project\'s folder'
        print(
            f"to-device {name} needs the package {missing}. "
            f"Run: python -m pip install {package}",
            file=sys.stderr,
        )
        return 2


def _run(name: str, arguments: Sequence[str]) -> int:
    if name in TOOLS:
        module = importlib.import_module(TOOLS[name])
    else:
        from to_device import launcher

        launcher.prepare()
        if name == "app":
            return launcher.main(arguments)
        module = importlib.import_module(APP[name])
    return module.main(arguments, f"to-device {name}") or 0
