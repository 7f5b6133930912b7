"""Files of a script's folder that hide modules of Python itself from torch."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 60  # to import torch takes a few
IMPORT = "import sys; sys.path.insert(0, sys.argv[1]); import torch"


def hiding(folder: str) -> list[str]:
    """The names of files and packages in a folder that are also Python's own modules.

    Python looks in the script's folder first, so torch gets these.
    """
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.removesuffix(".py")
            is_file = name != entry.name and entry.is_file()
            is_package = os.path.exists(os.path.join(entry.path, "__init__.py"))
            if name in sys.stdlib_module_names and (is_file or is_package):
                found.append(entry.name)
    return sorted(found)


def why_no_torch(script: str, module: str) -> str:
    """Why torch can't be imported by a script because of its folder; "" if it can."""
    folder = os.getcwd() if module else str(Path(script).absolute().parent)
    try:
        names = hiding(folder)
    except OSError:
        return ""
    error = error_of_import(folder) if names else ""
    if not error:
        return ""
    files = " and ".join(names)
    return (
        f"torch can't be imported beside {files}, since Python takes this for its own "
        f"module of the same name: {error}. Give it another name."
    )


def error_of_import(folder: str) -> str:
    """The error of `import torch` with a folder in the first place; "" if it works."""
    command = [sys.executable, "-P", "-c", IMPORT, folder]
    try:
        done = subprocess.run(command, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].rstrip(".") if done.returncode and lines else ""
